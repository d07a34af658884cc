"""What every route of a running simulator shares."""

import hashlib
import hmac
from dataclasses import dataclass

from aiohttp import web

from simulator.completion import Completion
from simulator.directives import Directives
from simulator.faults import NO_FAULT, Answer, AnswerFault, error_answer, has_turns, read_fault, read_turn
from simulator.jobs import Job
from simulator.journal import Journal, count_read
from simulator.rulebook import Rulebook
from simulator.settings import Settings
from simulator.signing import Signer

UNAUTHORISED = error_answer(401, detail="No user found for this key", error_type="unauthorized")
NOT_FOUND = error_answer(404, detail="Request not found", error_type="not_found")


@dataclass(frozen=True, slots=True)
class Simulator:
    """The parts of one running simulator."""

    settings: Settings
    journal: Journal
    rulebook: Rulebook
    completion: Completion
    signer: Signer


SIMULATOR = web.AppKey("simulator", Simulator)


def key_digest(request: web.Request) -> str | None:
    """The digest of the caller's key (the key itself is never stored), or None when it is not accepted."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    key = key.strip()
    if scheme.lower() != "key" or not key:
        return None
    accepted = request.app[SIMULATOR].settings.accepted_key
    if accepted is not None and not hmac.compare_digest(key.encode(), accepted.encode()):
        return None
    return hashlib.sha256(key.encode()).hexdigest()


async def job_fault(request: web.Request, job: Job, surface: str) -> tuple[AnswerFault, Directives]:
    """What goes wrong with a request about a job: a scripted fault first, else what its prompt asked for.

    Also returns the settings of a scripted fault, for those that are no matter of the answer alone.
    """
    simulator = request.app[SIMULATOR]
    prompt = str(job.input.get("prompt", ""))
    rule = await simulator.rulebook.take(surface, endpoint=job.endpoint, prompt=prompt)
    if rule is not None:
        return read_fault(rule), rule
    turn = 0
    if has_turns(job.directives, surface):
        turn = await simulator.journal.run(
            lambda connection: count_read(connection, job.request_id, surface=surface)
        )
    return read_turn(job.directives, surface, turn=turn), {}


async def rule_fault(request: web.Request, surface: str, endpoint: str | None) -> AnswerFault:
    """What goes wrong with a request that is about no job in particular."""
    rule = await request.app[SIMULATOR].rulebook.take(surface, endpoint=endpoint)
    return NO_FAULT if rule is None else read_fault(rule)


def refusal(status: int, detail: str) -> Answer:
    """A typed refusal."""
    return error_answer(status, detail=detail)
