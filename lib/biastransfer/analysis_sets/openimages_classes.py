"""Which Open Images classes stand for the set's objects and for people, child classes named one by one."""

import json
from pathlib import Path

CAR = "/m/0k4j"
SPORTS = "/m/05y5lj"  # Sports equipment
FASHION = "/m/0463sg"  # Fashion accessory
MAMMAL = "/m/04rky"
STOP_SIGN = "/m/02pv19"
PARENTS = {"car": CAR, "sports": SPORTS, "fashion": FASHION, "mammal": MAMMAL, "stop sign": STOP_SIGN}
PERSON = "/m/01g317"
PEOPLE = {"man": "/m/04yx4", "woman": "/m/03bt1vf", "boy": "/m/01bl7v", "girl": "/m/05r655", "person": PERSON}
# Human body and its parts (eye, head, face, mouth, ear, nose; hair, hand, foot, arm, leg, beard).
PARTS = tuple(
    f"/m/{name}"
    for name in (
        *("02p0tk3", "014sv8", "04hgtk", "0dzct", "0283dt1", "039xj_", "0k0pj"),
        *("03q69", "0k65p", "031n1", "0dzf4", "035r7c", "015h_t"),
    )
)
# The box hierarchy of Open Images (CC BY 4.0), read downwards. Left out against it: the teddy bear,
# which it files under bear, and the baseball glove under fashion, which it files under sports as well.
CHILDREN = {
    "car": "/m/01lcw4 /m/0h2r6",
    "sports": (
        "/m/014y4n /m/018xm /m/01226z /m/02ctlc /m/02rgn06 /m/05ctyq /m/0wdt60w /m/0199g /m/019w40 /m/01g3x7 "
        "/m/0268lbt /m/02p3w7d /m/02wmf /m/03g8mr /m/03grzl /m/0420v5 /m/044r5d /m/054xkw /m/057p5t /m/06__v "
        "/m/06_fw /m/071p9 /m/07pj7bq /m/04h8sr /m/03kt2w /m/030610 /m/076lb9 /m/03wym /m/0cqn2 /m/0cyfs "
        "/m/0dv9c /m/0h8my_4 /m/05_5p_0 /m/0l3ms /m/0zvk5 /m/03p3bw /m/07qxg_ /m/04p0qw"
    ),
    "fashion": (
        "/m/0174n1 /m/0176mf /m/017ftj /m/01krhy /m/01llwg /m/01nq26 /m/01r546 /m/01rkbr /m/02_n6y /m/02dl1y "
        "/m/025rp__ /m/02fq_6 /m/02jfl0 /m/02wbtzl /m/02h19r /m/080hkjn /m/0gjkl /m/0hnnb /m/0jyfg /m/0nl46"
    ),
    "mammal": (
        "/m/01h44 /m/01lrl /m/01dws /m/01dxs /m/03bj1 /m/0633h /m/01yrx /m/0306r /m/0449p /m/04g2r "
        "/m/06l9r /m/07dm6 /m/096mb /m/0bt9lr /m/0c29q /m/0cd4d /m/0cn6p /m/0dq75 /m/01x_v /m/01xq0k1 "
        "/m/03bk1 /m/03d443 /m/03fwl /m/03k3r /m/03qrc /m/04c0y /m/04cp_ /m/04rmv /m/068zj /m/06mf6 "
        "/m/071qp /m/07bgp /m/0898b /m/08pbxl /m/09f20 /m/09kx5 /m/0bwd_0j /m/0c568 /m/0cl4p /m/0cnyhnx "
        "/m/0czz2 /m/0dbzx /m/0gd2v /m/02hj4 /m/084zz /m/0gd36 /m/02l8p9 /m/0km7z /m/0pcr /m/0xfy"
    ),
}


def roles(hierarchy: Path | None = None) -> list[tuple[str, str]]:
    """Return (class MID, role) pairs; a role is an object of the set, man, woman, boy, girl, person or part.

    Parameters
    ----------
    hierarchy : Path, optional
        ``bbox_labels_600_hierarchy.json``; its sub-classes then replace the list in this module.

    Raises
    ------
    ValueError
        A file that is not the hierarchy.
    """
    children = {name: text.split() for name, text in CHILDREN.items()}
    if hierarchy is not None:
        children = {name: below(hierarchy, mid) for name, mid in PARENTS.items()}
    pairs = [(mid, name) for name, mid in (PARENTS | PEOPLE).items()] + [(mid, "part") for mid in PARTS]
    people = {mid for mid, name in pairs if name in PEOPLE or name == "part"}
    return pairs + [(mid, name) for name, mids in children.items() for mid in mids if mid not in people]


def below(hierarchy: Path, mid: str) -> list[str]:
    """Return every sub-class of a class, of any depth, in the file's order (parts are not sub-classes)."""
    try:
        tree = json.loads(hierarchy.read_text(encoding="utf-8"))
        return list(dict.fromkeys(_names(tree, mid, inside=False)))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ValueError(
            f"{hierarchy} must be Open Images' box hierarchy (LabelName, Subcategory); {problem!r}. "
            "Fetch it again."
        ) from problem


def _names(node: dict, mid: str, inside: bool):
    """Yield the names below ``mid``, wherever in the tree it stands."""
    if inside:
        yield node["LabelName"]
    for child in node.get("Subcategory", []):
        yield from _names(child, mid, inside or node["LabelName"] == mid)
    for part in node.get("Part", []):
        yield from _names(part, mid, inside=False)
