// Renders /openapi.json as a page.
import { address } from "./api.js";
import { el, named } from "./dom.js";

function typeOf(schema, root) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, root)).join(" or ");
  if (schema.oneOf ?? schema.anyOf) return (schema.oneOf ?? schema.anyOf).map((part) => typeOf(part, root)).join(" or ");
  if (schema.type === "array") return schema.items ? `list of ${typeOf(schema.items, root)}` : "list";
  return schema.type ?? "any";
}

function resolved(schema, root) {
  if (!schema?.$ref) return schema;
  return schema.$ref.replace(/^#\//, "").split("/").reduce((node, part) => node?.[part], root);
}

// Rows of a table: the fields of an object and of the objects in it, such as choices[].message.
function rowsOf(schema, root, within = "") {
  const whole = resolved(schema, root);
  const required = new Set(whole?.required ?? []);
  return Object.entries(whole?.properties ?? {}).flatMap(([name, field]) => {
    const path = within + name;
    const inner = field.items?.properties ? rowsOf(field.items, root, `${path}[].`) : rowsOf(field, root, `${path}.`);
    return [{ path, field, required: required.has(name) }, ...inner];
  });
}

// answered: the fields are of an answer, where those are marked that are not always there.
function fieldTable(schema, root, title, answered = false) {
  const rows = rowsOf(schema, root);
  if (rows.length === 0) return null;
  const badge = (required) => (answered === required ? null : el("span", { class: answered ? "badge" : "badge accent", text: answered ? "not always" : "required" }));
  return el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": title }, el("table", {},
    el("caption", { class: "seen-by-readers", text: title }),
    el("thead", {}, el("tr", {}, ...["Field", "Type", "Note"].map((text) => el("th", { scope: "col", text })))),
    el("tbody", {}, ...rows.map(({ path, field, required }) => el("tr", {},
      el("th", { scope: "row" }, el("code", {}, named(path)), " ", badge(required)),
      el("td", { text: typeOf(field, root) }), el("td", { text: field.description ?? field.items?.description ?? "" }))))));
}

function answers(operation, root) {
  return el("table", {}, el("caption", { class: "seen-by-readers", text: "Answers" }),
    el("thead", {}, el("tr", {}, ...["Status", "Meaning", "Body"].map((text) => el("th", { scope: "col", text })))),
    el("tbody", {}, ...Object.entries(operation.responses).map(([status, response]) => el("tr", {},
      el("th", { scope: "row", text: status }), el("td", { text: response.description }),
      el("td", {}, ...Object.entries(response.content ?? {}).map(([type, { schema }]) => el("code", { text: `${type} ${typeOf(schema, root)} ` })))))));
}

function answerFields(path, operation, root) {
  return Object.entries(operation.responses["200"]?.content ?? {}).flatMap(([type, { schema }]) => {
    const title = `${type === "text/event-stream" ? "An event" : "The answer"} of ${path}`;
    const table = fieldTable(schema, root, title, true);
    return table ? [el("h3", {}, "Fields of ", type === "text/event-stream" ? "an event" : "the answer", el("span", { class: "hint", text: ` ${type}` })), table] : [];
  });
}

function endpoint(path, method, operation, root) {
  const [type, body] = Object.entries(operation.requestBody?.content ?? {}).map(([name, content]) => [name, content.schema])[0] ?? [];
  return el("details", { class: "sheet endpoint", id: operation.operationId },
    el("summary", {}, el("span", { class: "method", text: method.toUpperCase() }), el("span", { class: "path" }, named(path)), el("span", { class: "hint", text: operation.summary })),
    el("div", { class: "stack" },
      operation.description ? el("p", { text: operation.description }) : null,
      operation.security ? el("p", { class: "hint", text: "Needs the API key: Authorization: Bearer KEY" }) : null,
      body ? el("h3", {}, "Body", type === "application/json" ? null : el("span", { class: "hint", text: ` ${type}` })) : null, body ? fieldTable(body, root, `Fields of ${path}`) : null,
      body?.description ? el("p", { class: "hint", text: body.description }) : null,
      el("h3", { text: "Answers" }), answers(operation, root), ...answerFields(path, operation, root)));
}

async function show() {
  const main = document.getElementById("main");
  let root;
  try {
    const response = await fetch(address("/openapi.json"), { cache: "no-store" });
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    root = await response.json();
  } catch (fault) {
    return main.append(el("div", { class: "data" }, el("p", { class: "fault", role: "alert", text: fault.message })));
  }
  const list = Object.entries(root.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => endpoint(path, method, operation, root)));
  const search = el("input", { type: "search", placeholder: "Search endpoints and fields…", "aria-label": "Search endpoints and fields" });
  search.addEventListener("input", () => {
    const word = search.value.trim().toLowerCase();
    for (const node of list) node.hidden = word !== "" && !node.textContent.toLowerCase().includes(word);
  });
  const errors = resolved({ $ref: "#/components/schemas/Error" }, root);
  main.append(el("div", { class: "data" },
    el("div", { class: "row" }, el("h1", { class: "grow" }, `${root.info.title} ${root.info.version}`), el("div", { class: "find" }, search)),
    el("p", { text: root.info.description }),
    el("p", { class: "hint" }, "As OpenAPI: ", el("a", { href: String(address("/openapi.json")), text: "openapi.json" })),
    ...list,
    el("section", { class: "sheet panel" }, el("h2", { text: "Errors" }), el("p", { text: "Every error has this body." }), fieldTable(errors.properties.error, root, "Fields of an error", true))));
  const wanted = list.find((node) => node.id === location.hash.slice(1));
  if (wanted) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

show();
