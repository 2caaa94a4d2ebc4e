"""Which of a set's objects a backbone was taught by name: their overlap with its pretraining classes."""

from collections.abc import Sequence

import pandas as pd

COLUMNS = ["object", "n", "classes"]
RULE = (
    "A pretraining class counts for an object when one of its synonyms is one of the object's names or ends "
    "in one, as a golf ball is a ball. Kinds whose names do not say so are counted where they are listed."
)
# Names of the object, of its Open Images child classes, and of kinds that WordNet files under it.
NAMES = {
    "car": (
        "car|auto|automobile|motorcar|ambulance|station wagon|cab|taxi|convertible|jeep|limousine|minivan|"
        "model t|racer|roadster|sedan|coupe|hatchback|hot rod|van"
    ),
    "refrigerator": "refrigerator|icebox|fridge",
    "surfboard": "surfboard",
    "stop sign": "stop sign",
    "sports": (
        "ball|football|baseball|basketball|volleyball|puck|paddle|racket|racquet|ski|snowboard|skateboard|"
        "surfboard|flying disc|frisbee|roller skate|ice skate|bow and arrow|baseball bat|baseball glove|"
        "punching bag|lifejacket|scoreboard|dumbbell|barbell|treadmill|horizontal bar|parallel bars|high bar|"
        "balance beam|parachute|football helmet|crash helmet|bicycle helmet|billiard table|pool table"
    ),
    "fashion": (
        "glove|mitten|belt|sunglasses|glasses|goggles|tiara|crown|necklace|sock|earring|tie|bow-tie|hat|"
        "fedora|sombrero|bonnet|scarf|stole|feather boa|handbag|purse|watch|umbrella|bracelet"
    ),
    "mammal": (
        "mammal|tusker|echidna|platypus|wallaby|kangaroo|koala|wombat|whale|dugong|dolphin|seal|lion|chihuahua|"
        "spaniel|dog|pekinese|shih-tzu|papillon|terrier|ridgeback|hound|basset|beagle|bloodhound|bluetick|"
        "coonhound|foxhound|redbone|borzoi|wolfhound|greyhound|whippet|elkhound|otterhound|saluki|deerhound|"
        "weimaraner|bullterrier|airedale|cairn|dinmont|bull|schnauzer|lhasa|retriever|pointer|vizsla|setter|"
        "clumber|springer|kuvasz|schipperke|groenendael|malinois|briard|kelpie|komondor|sheepdog|collie|"
        "bouvier des flandres|rottweiler|shepherd|doberman|pinscher|appenzeller|entlebucher|boxer|mastiff|"
        "bulldog|great dane|saint bernard|malamute|husky|dalmatian|affenpinscher|basenji|pug|leonberg|"
        "newfoundland|pyrenees|samoyed|pomeranian|chow|keeshond|griffon|corgi|poodle|mexican hairless|wolf|"
        "coyote|dingo|dhole|hyena|fox|tabby|cat|cougar|lynx|leopard|jaguar|tiger|cheetah|bear|mongoose|meerkat|"
        "raccoon|panda|rabbit|hare|angora|hamster|mouse|rat|porcupine|hedgehog|squirrel|marmot|beaver|pig|"
        "sorrel|horse|mule|zebra|hog|boar|warthog|hippopotamus|rhinoceros|giraffe|cattle|cow|ox|buffalo|bison|"
        "ram|sheep|goat|bighorn|ibex|antelope|deer|hartebeest|impala|gazelle|camel|llama|alpaca|weasel|mink|"
        "polecat|ferret|otter|skunk|badger|armadillo|sloth|bat|orangutan|gorilla|chimpanzee|gibbon|siamang|"
        "guenon|patas|baboon|macaque|langur|colobus|monkey|marmoset|capuchin|titi|indri|elephant"
    ),
}
# Names that end so and are something else.
EXCEPT = {
    "car": "freight car|passenger car|trolley car|cable car|railway car|tow car|moving van|police van",
    "sports": "wrecking ball|mothball",
    "fashion": "seat belt|life belt|fan belt|stop watch|field glasses|opera glasses|railroad tie",
    "mammal": "teddy bear|hot dog|computer mouse|mechanical bull|pommel horse|vaulting horse|baseball bat",
}


def pretraining_overlap(objects: Sequence[str], classes: Sequence[str]) -> pd.DataFrame:
    """Find the pretraining classes that are an object of the set, or a kind of it.

    Parameters
    ----------
    objects : sequence of str
        Keys of `NAMES`; any other object goes by its own name.
    classes : sequence of str
        The pretraining classes, synonyms of each separated by commas (`backbones.pretraining_classes`).

    Returns
    -------
    DataFrame
        One row an object: object, n (classes), classes (their first synonyms, joined by "; ").

    Notes
    -----
    `RULE` says when a class counts; the names were gone through for ImageNet-1k. In larger label sets a
    name may be another thing's too (in ImageNet-21k a racer is also a snake): read the list. A network that
    was taught to name an object has reason to represent it whoever stands beside it; others have less.

    Examples
    --------
    >>> classes = ["sports car, sport car", "freight car", "cab, taxi"]
    >>> pretraining_overlap(["car", "surfboard"], classes)["n"].tolist()
    [2, 0]
    """
    synonyms = [[word.strip().lower() for word in one.replace("_", " ").split(",")] for one in classes]
    rows = []
    for thing in objects:
        names = NAMES.get(thing, thing).lower().split("|")
        others = EXCEPT.get(thing, "").split("|")
        found = [words[0] for words in synonyms if _counts(words, names, others)]
        rows.append((thing, len(found), "; ".join(found)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _counts(words: Sequence[str], names: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether a class of these synonyms is the thing, and no synonym is one of the exceptions."""
    if any(word == other for word in words for other in others):
        return False
    return any(word == name or word.endswith(f" {name}") for word in words for name in names)
