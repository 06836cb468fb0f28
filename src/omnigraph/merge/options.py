"""The options of a merge, a revert or a cherry-pick."""

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
    """How conflicts are handled. `strategy`: the side that wins conflicts between the sides; it never overrides rules."""

    #: The schema that the merge is prepared under.
    requires: SchemaIs
    strategy: Strategy | None = None
    #: The caller's decisions, not yet checked against a schema.
    resolutions: Resolutions = field(default_factory=dict)
    #: The text of the schema for the merged graph; it overrides the schemas of both sides.
    schema: str | None = None
    #: Whether changes of different properties of one entity are combined.
    property_level: bool = False
    #: Whether `property_level` comes from the graph's setting and not from the caller.
    is_habit: bool = False
    #: Whether conflicts include the images of the entity in base, ours and theirs.
    images: bool = False
    #: Do everything except writing; conflicts are returned, not raised.
    dry_run: bool = False
    #: Where changes of large tables are judged and written: "auto", "local" or "spark".
    engine: str = "auto"
    spark: SparkOptions = field(default_factory=SparkOptions)
    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    #: Called if the merge changes the target's schema; raises if the caller may not do that.
    allow_schema: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def level(self) -> str:
        """The unit of comparison, for results: whole entities, or each property of them."""
        return PROPERTY_LEVEL if self.property_level else ENTITY_LEVEL

    def fingerprint(self, *asked: str) -> str:
        """The fingerprint of the request, to tell a repeat from a different request under one idempotency key."""
        decided = [resolution.to_dict() for by_id in self.resolutions.values() for resolution in by_id.values()]
        decided.sort(key=lambda item: (item["type_key"], item["id"]))
        # The setting of the graph is left out: a repeat is the same request even if the setting has changed.
        wanted = [*asked, self.strategy, decided, self.property_level and not self.is_habit]
        # Only if there is one, so that requests of earlier releases keep their fingerprints.
        wanted += [] if self.schema is None else [self.schema]
        text = orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()


def read_strategy(given: str | None) -> Strategy | None:
    """A strategy by its name; None for None, raises for any other value."""
    for known in get_args(Strategy):
        if given == known:
            strategy: Strategy = known
            return strategy
    if given is None:
        return None
    raise BadRequest(f"strategy is {' or '.join(get_args(Strategy))}, not {given!r}")
