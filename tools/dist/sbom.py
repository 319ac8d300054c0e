"""The list of parts as an SPDX 2.3 document: https://spdx.github.io/spdx-spec/v2.3/."""

import dataclasses
import datetime
import re
import uuid

from names import Release


@dataclasses.dataclass(frozen=True)
class Part:
    """What a tree holds, as SPDX calls it a package."""

    name: str
    version: str
    purl: str  # package URL
    licence: str  # an SPDX expression, or NOASSERTION
    files: tuple[str, ...] = ()  # paths in the tree
    comment: str = ""  # licences as the part itself names them

    @property
    def key(self) -> str:
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{self.name}-{self.version}")


def debian_purl(architecture: str, name: str, version: str) -> str:
    """architecture: Debian's name of a machine, or "source"."""
    quoted = version.replace("+", "%2B").replace(":", "%3A").replace("~", "%7E")
    return f"pkg:deb/debian/{name}@{quoted}?arch={architecture}&distro=debian-12"


def package_of(part: Part) -> dict[str, object]:
    out: dict[str, object] = {
        "SPDXID": part.key,
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": part.licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}
        ],
    }
    notes = [part.comment] if part.comment else []
    if part.files:
        notes.append("files: " + ", ".join(part.files))
    if notes:
        out["comment"] = "; ".join(notes)
    return out


def document(release: Release, own: Part, parts: list[Part]) -> dict[str, object]:
    """`own` contains all `parts`."""
    made = datetime.datetime.fromtimestamp(release.epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    space = uuid.uuid5(uuid.NAMESPACE_URL, f"valora/{release.version}/{release.commit}")
    parts = sorted(parts, key=lambda part: part.key)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": release.name,
        "documentNamespace": f"urn:uuid:{space}",
        "creationInfo": {"created": made, "creators": ["Tool: valora-tools-dist"]},
        "packages": [package_of(part) for part in [own, *parts]],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": own.key},
            *({"spdxElementId": own.key, "relationshipType": "CONTAINS", "relatedSpdxElement": part.key} for part in parts),
        ],
    }
