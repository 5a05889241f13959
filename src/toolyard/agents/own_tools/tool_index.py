"""Finding tools by plain words: by names, descriptions and arguments, whatever form the words have."""

from __future__ import annotations

import math
import re
from collections import Counter
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from toolyard.core.tool import JsonInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.tool import Json, ToolSpec

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
SAYING_NOTHING = """
    a about also am an and any are as at be been but by can could do does for from give had has have how i if in into is
    it its just like me my need of on or our out please should so some tell than that the their them then there these
    they this to up us want was we what when where who will with would you your tool tools use used using via given
"""
IGNORED = frozenset(SAYING_NOTHING.split())
ENDINGS = ("ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ied", "ies", "ed", "es", "s")
ALIKE = """
    send post write publish submit deliver notify message
    get read fetch show view retrieve load display open look see check
    list enumerate browse all every which
    create make add new start open insert generate build register file
    delete remove erase drop clear discard destroy trash rid
    update change edit modify set alter rename adjust patch correct fix
    find search query lookup locate discover
    run execute launch invoke perform trigger
    stop end cancel kill terminate abort halt close
    copy duplicate clone replicate
    move transfer relocate shift
    convert transform turn encode
    compute calculate count sum evaluate
    resize scale size wide width height small large big pixel crop
    mail email gmail inbox letter
    text writing words transcript sms
    picture image photo screenshot drawing
    file document doc
    folder directory
    person user people contact member account employee colleague teammate somebody
    meeting appointment event calendar schedule booking
    issue bug ticket defect problem
    comment reply remark note feedback
    money currency euro dollar pound exchange amount
    payment charge price cost pay invoice bill worth quote value
    refund back return reimburse repay
    client customer buyer
    purchase order buy
    discount coupon voucher sale
    temperature weather forecast climate rain sunny snow
    place location address map city
    host domain dns ip hostname server
    website page url web site link
    database table sql row warehouse
    chat conversation channel slack talk thread
    task todo reminder remind
    repository repo git github branch commit
    remember store save keep persist
    download pull export csv
    upload push import
    share invite grant permission access let allow invitation
    song music track album playlist
    audio sound speech voice recording spoken aloud
    video film movie clip
    translate language english german french spanish italian chinese japanese
    summary summarize abstract digest shorten short
    merge combine join unite
    split divide separate cut
    compress zip archive pack shrink
    deploy deployment release ship rollout
    restart reboot reload
    log history trace
    password secret credential key login
    flight plane airline travel trip fly
    hotel room stay
    stock share market quote symbol
    time clock hour date day
    alert alarm warning notification
    machine instance vm computer
    checksum hash digest sha
    code script program python
"""
"""Words that people use for the same thing."""
IN_NAME, IN_DESCRIPTION, IN_ARGUMENTS = 3.0, 1.5, 0.6
ALIKE_COUNTS = 0.45
NEARLY_COUNTS = 0.7
SATURATION, LENGTH_COUNTS = 1.2, 0.4


class ToolIndex:
    """Some tools, in the order in which they fit a question; the ranking is BM25 over weighted fields."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = list(specs)
        self._words = [weights_of(spec) for spec in self._specs]
        self._lengths = [sum(words.values()) for words in self._words]
        self._usual_length = sum(self._lengths) / max(1, len(self._lengths))
        self._having = Counter(word for words in self._words for word in words)

    def search(self, question: str, most: int = 5) -> list[ToolSpec]:
        """The tools that fit best; none where nothing fits at all."""
        wanted = self._wanted(question)
        scores = [self._score(number, wanted) for number in range(len(self._specs))]
        best = sorted(range(len(scores)), key=lambda number: -scores[number])[:most]
        return [self._specs[number] for number in best if scores[number] > 0]

    def _wanted(self, question: str) -> dict[str, float]:
        """The words of a question, with how much each counts; one that no tool has may be a slip of the pen."""
        wanted: dict[str, float] = {}
        for word in stems(question):
            counts = 1.0
            if word not in self._having and word not in concepts() and (near := self._nearly(word)):
                word, counts = near, NEARLY_COUNTS
            wanted[word] = max(wanted.get(word, 0), counts)
            for concept in concepts().get(word, ()):
                wanted[concept] = max(wanted.get(concept, 0), counts * ALIKE_COUNTS)
        return wanted

    def _nearly(self, word: str) -> str | None:
        """A word that tools have and that this one may be meant for."""
        known = [other for other in self._having if other[0] == word[0]]
        return next(iter(get_close_matches(word, known, 1, 0.8)), None)

    def _score(self, number: int, wanted: dict[str, float]) -> float:
        words, length = self._words[number], self._lengths[number] / self._usual_length
        room = SATURATION * (1 - LENGTH_COUNTS + LENGTH_COUNTS * length)
        found = ((word, words[word]) for word in wanted if word in words)
        return sum(wanted[word] * self._rarity(word) * often / (often + room) for word, often in found)

    def _rarity(self, word: str) -> float:
        having = self._having[word]
        return math.log(1 + (len(self._specs) - having + 0.5) / (having + 0.5))


def weights_of(spec: ToolSpec) -> Counter[str]:
    """The words of a tool, with how much each says of it, and the concepts that they stand for."""
    words: Counter[str] = Counter()
    fields = [(spec.name, IN_NAME), (spec.description, IN_DESCRIPTION)]
    if isinstance(spec.input, JsonInput):
        fields += [(text, IN_ARGUMENTS) for text in argument_texts(spec.input.schema)]
    for text, weight in fields:
        for word in set(stems(text)):
            words[word] += weight  # type: ignore[assignment]  # a weight is no whole number
            for concept in concepts().get(word, ()):
                words[concept] = max(words[concept], weight)  # type: ignore[assignment]  # as above
    return words


def argument_texts(schema: Json) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, form in properties.items() if isinstance(properties, dict) else ():
        yield name
        if isinstance(form, dict) and isinstance(form.get("description"), str):
            yield form["description"]


def stems(text: str) -> list[str]:
    """The words of a text without their endings; those that say nothing are left out."""
    words = (word.lower() for word in WORD.findall(text))
    return [stem(word) for word in words if word not in IGNORED]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its ending, so that its forms are one: creates, creating and creation, invite and invitation."""
    for ending in ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not (ending == "s" and rest.endswith("s")):
            if ending in ("ies", "ied"):
                return f"{rest}i"
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "ls" else rest
            break
    if len(word) > 3 and word[-1] in "ey":
        word = word[:-1] if word[-1] == "e" else f"{word[:-1]}i"
    return word.removesuffix("at") if len(word) > 4 else word


@lru_cache(maxsize=1)
def concepts() -> dict[str, list[str]]:
    """For each word the groups of words that it belongs to."""
    found: dict[str, list[str]] = {}
    for number, group in enumerate(ALIKE.strip().split("\n")):
        for word in group.split():
            found.setdefault(stem(word), []).append(f"~{number}")
    return found
