"""What one call of the command line was told: by its global flags, the environment and the operator's configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.cli.operator_config import OperatorConfig, Profile

OUTPUTS = ("table", "kv", "csv", "jsonl", "json", "arrow")


@dataclass
class Settings:
    """The global flags of one call, filled in while they are parsed, and what stands behind them."""

    debug: bool = False
    yes: bool = False
    quiet: bool = False
    #: `as`, `server`, `graph`, `store`, `cluster` and `profile`, as far as they were given.
    flags: dict[str, str] = field(default_factory=dict)

    @cached_property
    def config(self) -> OperatorConfig:
        """The operator's configuration, read when somebody first asks."""
        from omnigraph.cli.operator_config import read_config

        return read_config()

    @property
    def actor(self) -> str | None:
        """Who writes: `--as`, else `operator.actor`, else nobody."""
        return self.flags.get("as") or self.config.actor

    @property
    def profile_name(self) -> str | None:
        """The active profile: `--profile`, else `$OMNIGRAPH_PROFILE`."""
        return self.flags.get("profile") or os.environ.get("OMNIGRAPH_PROFILE") or None

    @property
    def profile(self) -> Profile | None:
        """The active profile, checked."""
        return None if self.profile_name is None else self.config.profile(self.profile_name)

    def output(self) -> str:
        """The read format when no flag names one: the profile's, else `defaults.output`, else a table."""
        profile = self.profile
        return (profile and profile.output) or self.config.defaults.output or "table"
