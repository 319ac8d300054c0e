"""Schemas of the custom resources in deploy/."""


def obj(required, **properties):
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
NUMBER = {"type": "integer", "minimum": 0}
PORT = obj(["number"], number={"type": "integer", "minimum": 1, "maximum": 65535})
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
POD = obj(
    ["spec"], spec={"type": "object", "required": ["containers"]}, metadata={"type": "object"}
)
# Custom resources: the fields that we use, as documented by their projects. Pods inside them are checked with Kubernetes'
# own schemas.
CUSTOM = {
    "ray.io/v1 RayService": obj(
        ["serveConfigV2", "rayClusterConfig"],
        serveConfigV2={"type": "string"},
        upgradeStrategy=obj(
            [], type={"enum": ["NewCluster", "None", "NewClusterWithIncrementalUpgrade"]}
        ),
        rayClusterConfig=obj(
            ["headGroupSpec"],
            rayVersion={"type": "string"},
            enableInTreeAutoscaling={"type": "boolean"},
            headGroupSpec=obj(["template"], rayStartParams=TEXTS, template=POD),
            workerGroupSpecs={
                "type": "array",
                "items": obj(
                    ["groupName", "minReplicas", "maxReplicas", "template"],
                    groupName=NAME,
                    replicas=NUMBER,
                    minReplicas=NUMBER,
                    maxReplicas=NUMBER,
                    rayStartParams=TEXTS,
                    template=POD,
                ),
            },
        ),
    ),
    "inference.networking.k8s.io/v1 InferencePool": obj(
        ["selector", "targetPorts", "endpointPickerRef"],
        selector=obj(["matchLabels"], matchLabels=TEXTS),
        targetPorts={"type": "array", "items": PORT, "minItems": 1, "maxItems": 8},
        endpointPickerRef=obj(
            ["name", "port"], name=NAME, port=PORT, failureMode={"enum": ["FailOpen", "FailClose"]}
        ),
    ),
    "inference.networking.x-k8s.io/v1alpha2 InferenceObjective": obj(
        ["poolRef"], poolRef=obj(["name"], name=NAME), priority={"type": "integer"}
    ),
    "gateway.networking.k8s.io/v1 HTTPRoute": obj(
        ["parentRefs", "rules"],
        parentRefs={"type": "array", "items": obj(["name"], name=NAME)},
        rules={"type": "array", "items": {"type": "object", "required": ["backendRefs"]}},
    ),
}
