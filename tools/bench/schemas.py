"""Ten schemas typical of applications, from short to long."""


def obj(properties, optional=(), **more):
    return {"type": "object", "properties": properties, "required": [name for name in properties if name not in optional],
            "additionalProperties": False} | more


def array(items, **more):
    return {"type": "array", "items": items} | more


def text(**more):
    return {"type": "string"} | more


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


INTEGER, NUMBER, BOOLEAN = {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
MONEY = obj({"amount": {"type": "number", "minimum": 0}, "currency": {"enum": ["EUR", "USD", "GBP", "JPY", "CHF"]}})
ADDRESS = obj({"street": text(), "city": text(), "postcode": text(pattern="^[A-Z0-9 -]{3,10}$"), "country": text(pattern="^[A-Z]{2}$")})
POSITION = array(NUMBER, minItems=2, maxItems=3)

SENTIMENT = obj({"sentiment": {"enum": ["positive", "neutral", "negative"]}, "reason": text()})

DETECTIONS = array(obj({"label": {"enum": ["car", "bus", "truck", "bicycle", "person", "dog"]},
                        "box": array({"type": "integer", "minimum": 0, "maximum": 4096}, minItems=4, maxItems=4),
                        "score": {"type": "number", "minimum": 0, "maximum": 1}}))

INVOICE = obj({
    "number": text(), "issued": text(format="date"), "due": text(format="date"),
    "seller": obj({"name": text(), "vat": text(pattern="^[A-Z]{2}[0-9A-Z]{8,12}$"), "address": ref("address")}),
    "buyer": obj({"name": text(), "address": ref("address")}),
    "lines": array(obj({"description": text(), "quantity": {"type": "integer", "minimum": 1}, "price": ref("money"),
                        "vat_percent": {"enum": [0, 7, 19]}}), minItems=1),
    "total": ref("money"), "paid": BOOLEAN}, optional=("due", "paid"), **{"$defs": {"address": ADDRESS, "money": MONEY}})

RECEIPT = obj({"shop": text(maxLength=40), "time": text(format="date-time"), "items": array(obj({"name": text(maxLength=30), "price": NUMBER})),
               "payment": {"enum": ["cash", "card"]}, "total": NUMBER})

PACKAGE = obj({
    "name": text(pattern="^(@[a-z0-9-]+/)?[a-z0-9-]+$"), "version": text(pattern="^[0-9]+[.][0-9]+[.][0-9]+$"), "description": text(),
    "private": BOOLEAN, "license": text(), "keywords": array(text()), "main": text(),
    "author": {"anyOf": [text(), obj({"name": text(), "email": text(format="email"), "url": text(format="uri")})]},
    "repository": obj({"type": {"enum": ["git", "svn"]}, "url": text(format="uri")}),
    "scripts": {"type": "object", "additionalProperties": text()}, "dependencies": {"type": "object", "additionalProperties": text()},
    "devDependencies": {"type": "object", "additionalProperties": text()},
    "engines": obj({"node": text(), "npm": text()}, optional=("npm",))},
    optional=("private", "keywords", "main", "author", "repository", "scripts", "dependencies", "devDependencies", "engines"))

GEOJSON = obj({
    "type": {"const": "FeatureCollection"},
    "features": array(obj({"type": {"const": "Feature"}, "id": {"anyOf": [text(), INTEGER]}, "geometry": ref("geometry"),
                           "properties": {"type": "object", "additionalProperties": {"anyOf": [text(), NUMBER, BOOLEAN, {"type": "null"}]}}},
                          optional=("id",)))},
    **{"$defs": {"geometry": {"anyOf": [
        obj({"type": {"const": "Point"}, "coordinates": POSITION}),
        obj({"type": {"const": "LineString"}, "coordinates": array(POSITION, minItems=2)}),
        obj({"type": {"const": "Polygon"}, "coordinates": array(array(POSITION, minItems=4))}),
        obj({"type": {"const": "MultiPoint"}, "coordinates": array(POSITION)}),
        obj({"type": {"const": "GeometryCollection"}, "geometries": array(ref("geometry"))})]}}})

OPENAPI = obj({
    "openapi": {"const": "3.1.0"}, "info": obj({"title": text(), "version": text(), "summary": text()}, optional=("summary",)),
    "servers": array(obj({"url": text(format="uri"), "description": text()}, optional=("description",))),
    "paths": {"type": "object", "additionalProperties": obj(
        {method: ref("operation") for method in ("get", "put", "post", "delete", "patch")}, optional=("get", "put", "post", "delete", "patch"))}},
    **{"$defs": {
        "operation": obj({"operationId": text(), "summary": text(), "tags": array(text()), "parameters": array(ref("parameter")),
                          "requestBody": obj({"required": BOOLEAN, "content": ref("content")}),
                          "responses": {"type": "object", "additionalProperties": obj({"description": text(), "content": ref("content")},
                                                                                      optional=("content",))}},
                         optional=("summary", "tags", "parameters", "requestBody")),
        "parameter": obj({"name": text(), "in": {"enum": ["query", "header", "path", "cookie"]}, "required": BOOLEAN, "schema": ref("schema")}),
        "content": {"type": "object", "additionalProperties": obj({"schema": ref("schema")})},
        "schema": obj({"type": {"enum": ["string", "number", "integer", "boolean", "array", "object"]}, "format": text(), "items": ref("schema"),
                       "properties": {"type": "object", "additionalProperties": ref("schema")}, "required": array(text()), "nullable": BOOLEAN},
                      optional=("format", "items", "properties", "required", "nullable"))}})

RESUME = obj({
    "name": text(), "email": text(format="email"), "phone": text(pattern="^[+]?[0-9 ()-]{5,20}$"), "born": text(format="date"),
    "skills": array(obj({"name": text(), "level": {"enum": ["basic", "good", "expert"]}, "years": {"type": "integer", "minimum": 0, "maximum": 60}}),
                    maxItems=20),
    "jobs": array(obj({"employer": text(), "title": text(), "from": text(format="date"), "to": {"anyOf": [text(format="date"), {"type": "null"}]},
                       "tasks": array(text(), maxItems=8)}), maxItems=12),
    "education": array(obj({"school": text(), "degree": text(), "year": {"type": "integer", "minimum": 1950, "maximum": 2035}}), maxItems=6),
    "languages": array({"enum": ["de", "en", "es", "fr", "it", "ja", "pl", "pt", "tr", "uk", "zh"]}, minItems=1)}, optional=("phone", "born"))

DAMAGE = obj({
    "vehicle": obj({"plate": text(pattern="^[A-Z]{1,3}-[A-Z]{1,2} [0-9]{1,4}$"), "make": text(), "model": text(), "colour": text(),
                    "mileage": {"type": "integer", "minimum": 0, "maximum": 2000000}}),
    "accident": obj({"at": text(format="date-time"), "place": text(), "weather": {"enum": ["dry", "rain", "snow", "ice", "fog"]},
                     "speed": {"type": "integer", "minimum": 0, "maximum": 300}, "police": BOOLEAN}),
    "damages": array(obj({"part": {"enum": ["bumper_front", "bumper_rear", "door_fl", "door_fr", "door_rl", "door_rr", "bonnet", "roof", "boot",
                                            "wing_l", "wing_r", "windscreen", "mirror_l", "mirror_r", "light_l", "light_r", "wheel"]},
                          "kind": {"enum": ["scratch", "dent", "crack", "missing"]}, "severity": {"type": "integer", "minimum": 1, "maximum": 5},
                          "box": array(INTEGER, minItems=4, maxItems=4), "repair": {"anyOf": [{"const": "replace"}, {"const": "paint"}, {"type": "null"}]},
                          "note": text(maxLength=80)}, optional=("note",)), minItems=1, maxItems=30),
    "drivable": BOOLEAN, "estimate": MONEY})

WORKFLOW = obj({
    "id": text(format="uuid"), "name": text(), "created": text(format="date-time"),
    "steps": array(ref("step"), minItems=1)},
    **{"$defs": {
        "step": {"anyOf": [
            obj({"kind": {"const": "http"}, "method": {"enum": ["GET", "POST", "PUT", "DELETE"]}, "url": text(format="uri"),
                 "headers": {"type": "object", "additionalProperties": text()}, "timeout": {"type": "integer", "minimum": 1, "maximum": 600}}),
            obj({"kind": {"const": "script"}, "language": {"enum": ["python", "bash", "sql"]}, "source": text()}),
            obj({"kind": {"const": "branch"}, "if": ref("condition"), "then": array(ref("step")), "else": array(ref("step"))}),
            obj({"kind": {"const": "loop"}, "over": text(), "limit": {"type": "integer", "minimum": 1, "maximum": 10000}, "body": array(ref("step"))}),
            obj({"kind": {"const": "mail"}, "to": array(text(format="email"), minItems=1), "subject": text(), "body": text()})]},
        "condition": {"anyOf": [
            obj({"all": array(ref("condition"), minItems=1)}), obj({"any": array(ref("condition"), minItems=1)}),
            obj({"left": text(), "operator": {"enum": ["==", "!=", "<", "<=", ">", ">=", "in"]}, "right": {"anyOf": [text(), NUMBER, BOOLEAN]}})]}}})

ALL = {"sentiment": SENTIMENT, "detections": DETECTIONS, "receipt": RECEIPT, "invoice": INVOICE, "package.json": PACKAGE, "GeoJSON": GEOJSON,
       "OpenAPI": OPENAPI, "résumé": RESUME, "vehicle damage": DAMAGE, "workflow": WORKFLOW}

# These yield answers of at least several hundred tokens, so that all measured answers have the same
# length.
LONG = {"boxes": DETECTIONS | {"minItems": 100},
        "texts": array(obj({"title": text(), "note": text()}), minItems=100)}
