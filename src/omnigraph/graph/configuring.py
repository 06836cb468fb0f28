"""The settings of a graph: what its verbs do where a caller says nothing."""

from __future__ import annotations

from omnigraph.graph.handle import Handle
from omnigraph.policy.actions import ADMIN, Need


class Configuring(Handle):
    """The verbs that read and change the settings. They belong to the graph, and to no branch of it."""

    def config(self) -> dict[str, str]:
        """The value of every setting by its name, such as `{"merge.level": "entity"}`."""
        from omnigraph.commit.config import read_config

        return read_config(self._context.store)

    def set_config(
        self, name: str, value: str | None, *, actor: str | None = None, idempotency_key: str | None = None
    ) -> dict[str, str]:
        """Set a setting for everybody who works on this graph, or with None give it its default back; returns all settings.

        `merge.level`: "entity", or "property" so that changes of different properties of one entity are combined by every
        merge, rebase, revert and cherry-pick that is not given `property_level`. It makes no commit; `actor` is kept beside it.
        `idempotency_key`: a repeat of the call returns the first answer and sets nothing.
        """
        from omnigraph.commit.config import check_setting, set_config
        from omnigraph.commit.exactly_once import once

        check_setting(name, value)
        self._allow_write(actor, Need(ADMIN))
        asked = once(idempotency_key, "set_config", name=name, value=value)
        return set_config(self._context, name, value, actor or self.actor, asked)
