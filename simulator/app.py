"""Putting the parts together: routes, and what starts and stops with the process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from simulator import control, file_routes, platform_routes, queue_routes
from simulator.completion import Completion
from simulator.journal import Journal
from simulator.rulebook import Rulebook
from simulator.settings import Settings
from simulator.signing import load_signer
from simulator.state import SIMULATOR, Simulator
from simulator.webhooks import Sender

BODY_LIMIT = 32 * 1024 * 1024  # bytes; images may come inside the JSON


def make_app(settings: Settings) -> web.Application:
    """The application; its background work begins when it is served."""
    app = web.Application(client_max_size=BODY_LIMIT)
    journal = Journal(settings.journal_path)
    signer = load_signer(settings.folder)
    rulebook = Rulebook(journal)
    sender = Sender(journal, signer)
    completion = Completion(journal, rulebook, sender, public_url=settings.public_url)
    app[SIMULATOR] = Simulator(
        settings=settings, journal=journal, rulebook=rulebook, completion=completion, signer=signer
    )

    async def background(_: web.Application) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(completion.run()), asyncio.create_task(sender.run())]
        for task in tasks:
            task.add_done_callback(_stop_on_failure)
        yield
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        journal.close()

    app.cleanup_ctx.append(background)
    control.add_routes(app)
    platform_routes.add_routes(app)
    file_routes.add_routes(app)
    queue_routes.add_routes(app)  # last: a submit's address may be almost anything
    return app


def _stop_on_failure(task: asyncio.Task[None]) -> None:
    """A simulator that ends no job or calls nobody is worse than none: it stops, and may be restarted."""
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler({"message": "background work failed", "exception": error})
        raise web.GracefulExit from error
