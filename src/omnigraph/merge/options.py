"""What a caller asks of a merge, a revert or a cherry-pick."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

import orjson

from omnigraph.commit.config import ENTITY_LEVEL, PROPERTY_LEVEL
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import BadRequest
from omnigraph.merge.classify import Strategy
from omnigraph.merge.resolutions import Resolutions
from omnigraph.spark.options import SparkOptions


@dataclass(frozen=True)
class Options:
    """How conflicts are met. `strategy` decides those between two sides for one of them, never a broken rule."""

    #: The schema that the merge is prepared under.
    requires: SchemaIs
    strategy: Strategy | None = None
    #: What the caller has decided; not yet held against a schema.
    resolutions: Resolutions = field(default_factory=dict)
    #: The text of the schema that the merge is to lead to; it decides whatever the schemas of the sides disagree about.
    schema: str | None = None
    #: Changes of different properties of one entity are combined.
    property_level: bool = False
    #: That is what the graph's setting says, and not what the caller asked for.
    is_habit: bool = False
    #: Conflicts carry the entity as base, ours and theirs have it.
    images: bool = False
    #: Everything but the writing; conflicts are part of the answer.
    dry_run: bool = False
    #: Where the changes of large tables are judged and written: "auto", "local" or "spark".
    engine: str = "auto"
    spark: SparkOptions = field(default_factory=SparkOptions)
    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    #: Raises when who asks may not change the schema of the target. It is called when the result has another schema than that.
    allow_schema: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def level(self) -> str:
        """What is compared, as results tell it: whole entities, or each property of them."""
        return PROPERTY_LEVEL if self.property_level else ENTITY_LEVEL

    def fingerprint(self, *asked: str) -> str:
        """What was asked, to tell a repeated request from another one under the same idempotency key."""
        decided = [resolution.to_dict() for by_id in self.resolutions.values() for resolution in by_id.values()]
        decided.sort(key=lambda item: (item["type_key"], item["id"]))
        # A repeat is the same request, whatever the setting of the graph is by then.
        wanted = [*asked, self.strategy, decided, self.property_level and not self.is_habit]
        # Only where there is one: requests of earlier releases stay what they were.
        wanted += [] if self.schema is None else [self.schema]
        text = orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()


def read_strategy(given: str | None) -> Strategy | None:
    """A strategy by its name."""
    for known in get_args(Strategy):
        if given == known:
            strategy: Strategy = known
            return strategy
    if given is None:
        return None
    raise BadRequest(f"strategy is {' or '.join(get_args(Strategy))}, not {given!r}")
