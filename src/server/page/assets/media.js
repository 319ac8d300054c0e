// Pictures and videos of a question: chosen, dropped, pasted or taken with the camera.
import { button, el, named, nameText, replace } from "./dom.js";
import { bytes } from "./format.js";

const MOST = 16;

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// {kind: "image" | "video", url, name, size}
export async function mediumOf(file) {
  const kind = file.type.startsWith("video/") ? "video" : "image";
  return { kind, url: await dataUrl(file), name: file.name || kind, size: file.size };
}

export function isMedium(file) {
  return file.type.startsWith("image/") || file.type.startsWith("video/");
}

export function preview(medium, properties = {}) {
  if (medium.kind === "video")
    return el("video", { src: medium.url, controls: true, muted: true, "aria-label": nameText(medium.name), ...properties });
  return el("img", { src: medium.url, alt: nameText(medium.name), ...properties });
}

// Takes a picture with the camera; null if it fails.
async function takePicture() {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  const video = el("video", { autoplay: true, muted: true, playsInline: true, class: "camera", "aria-label": "Camera" });
  video.srcObject = stream;
  const dialog = el("dialog", { "aria-label": "Take a picture" });
  const taken = new Promise((resolve) => {
    dialog.append(el("div", { class: "stack" }, video, el("div", { class: "row end" },
      button("Cancel", () => dialog.close(), { class: "quiet" }),
      button("Take it", () => {
        const canvas = el("canvas", { width: video.videoWidth, height: video.videoHeight });
        canvas.getContext("2d").drawImage(video, 0, 0);
        canvas.toBlob((blob) => { resolve(new File([blob], "camera.jpg", { type: "image/jpeg" })); dialog.close(); }, "image/jpeg", 0.92);
      }, { class: "primary" }))));
    dialog.addEventListener("close", () => setTimeout(() => resolve(null), 2000));
  });
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  for (const track of stream.getTracks()) track.stop();
  dialog.remove();
  return taken;
}

export function makeTray(say) {
  let media = [];
  const list = el("ul", { class: "tray", "aria-label": "Added pictures and clips" });
  const chooser = el("input", { type: "file", accept: "image/*,video/*", multiple: true, class: "seen-by-readers", tabIndex: -1, "aria-label": "Pictures and clips" });

  function draw() {
    list.hidden = media.length === 0;
    replace(list, ...media.map((medium, at) => el("li", {}, preview(medium, { controls: false }),
      el("span", { class: "hint" }, named(medium.name, 24), ` ${bytes(medium.size)}`),
      button("×", () => { media = media.filter((_, other) => other !== at); draw(); },
        { class: "quiet small", "aria-label": `Remove ${nameText(medium.name)}` }))));
  }
  async function add(files) {
    const wanted = [...files].filter(isMedium);
    if (wanted.length === 0) return say("This is neither a picture nor a clip.");
    if (media.length + wanted.length > MOST) return say(`A question takes at most ${MOST} pictures and clips.`);
    try {
      media = [...media, ...await Promise.all(wanted.map(mediumOf))];
      draw();
      return say(`${wanted.length === 1 ? nameText(wanted[0].name) : `${wanted.length} files`} added.`);
    } catch {
      return say("The file cannot be read.");
    }
  }

  chooser.addEventListener("change", () => { add(chooser.files); chooser.value = ""; });
  const buttons = [button("Picture or clip…", () => chooser.click())];
  if (navigator.mediaDevices?.getUserMedia)
    buttons.push(button("Camera", () => takePicture().then((file) => file && add([file]),
      () => say("This page has no access to a camera."))));
  draw();
  return {
    list, chooser, buttons, add,
    media: () => media,
    set: (wanted) => { media = [...wanted]; draw(); },
  };
}
