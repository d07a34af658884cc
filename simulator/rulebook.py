"""The scripted faults that stand: kept in memory for every request, and on disk for a restart."""

import json
from typing import Any

from simulator.directives import Directives
from simulator.faults import Rule, read_rule
from simulator.journal import Journal


class Rulebook:
    """Rules in the order they were given; the first that meets a request is used, once for that request."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rules: list[Rule] = []
        self._next_id = 1
        for row in journal.read.execute("SELECT rule_id, rule, remaining FROM faults ORDER BY rule_id"):
            rule = read_rule(json.loads(row["rule"]), rule_id=row["rule_id"])
            rule.remaining = row["remaining"]
            self._rules.append(rule)
            self._next_id = rule.rule_id + 1

    async def add(self, document: Any) -> Rule:
        """Adds a rule.

        Raises:
            InvalidRule: it cannot be understood; nothing is added.
        """
        rule = read_rule(document, rule_id=self._next_id)
        self._next_id += 1
        self._rules.append(rule)
        await self._journal.run(
            lambda connection: (
                connection.execute(
                    "INSERT INTO faults (rule_id, rule, remaining) VALUES (?, ?, ?)",
                    (rule.rule_id, json.dumps(document), rule.remaining),
                ).rowcount
            )
        )
        return rule

    async def take(self, on: str, *, endpoint: str | None = None, prompt: str = "") -> Directives | None:
        """The settings of the rule that meets a request; it is one use nearer to its end."""
        for rule in self._rules:
            if not rule.meets(on=on, endpoint=endpoint, prompt=prompt):
                continue
            if rule.remaining is not None:
                rule.remaining -= 1
                if rule.remaining == 0:
                    self._rules.remove(rule)
                await self._write_remaining(rule.rule_id, rule.remaining)
            return rule.fault
        return None

    async def clear(self, rule_id: int | None = None) -> int:
        """Removes one rule, or all; returns how many there were."""
        gone = [rule for rule in self._rules if rule_id in (None, rule.rule_id)]
        self._rules = [rule for rule in self._rules if rule not in gone]
        for rule in gone:
            await self._write_remaining(rule.rule_id, 0)
        return len(gone)

    def forget(self) -> None:
        """Drops all rules from memory, after the journal was reset."""
        self._rules = []

    def listed(self) -> list[dict[str, Any]]:
        """The standing rules, as the control API shows them."""
        return [
            {
                "id": rule.rule_id,
                "match": {
                    "on": rule.on,
                    "endpoint": rule.endpoint,
                    "prompt_contains": rule.prompt_contains,
                },
                "remaining": rule.remaining,
                "fault": rule.fault,
            }
            for rule in self._rules
        ]

    async def _write_remaining(self, rule_id: int, remaining: int) -> None:
        statement = "UPDATE faults SET remaining = ? WHERE rule_id = ?"
        values: tuple[int, ...] = (remaining, rule_id)
        if remaining == 0:
            statement, values = "DELETE FROM faults WHERE rule_id = ?", (rule_id,)
        await self._journal.run(lambda connection: connection.execute(statement, values).rowcount)
