"""FastAPI: one database for the event loop, opened and closed with the application.

uvicorn examples.frameworks.fastapi_app:app
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from examples.frameworks.guestbook import Badge, GuestProfile, GuestTheme, Profile, Theme, Visits
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from keywright import AsyncDatabase, aconnect
from keywright.errors import EngineError, VariableError


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with aconnect(client_name="fastapi") as db:  # REDIS_URL, else an embedded server
        app.state.db = db
        yield


app = FastAPI(lifespan=lifespan)


def database(request: Request) -> AsyncDatabase:
    db: AsyncDatabase = request.app.state.db
    return db


Db = Annotated[AsyncDatabase, Depends(database)]


@app.exception_handler(VariableError)
async def invalid_id(request: Request, error: VariableError) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 404)  # a name that no key can have


@app.exception_handler(EngineError)
async def outage(request: Request, error: EngineError) -> JSONResponse:
    return JSONResponse({"detail": "the database is not available"}, 503)


@app.put("/guests/{guest}/profile")
async def put_profile(guest: str, profile: GuestProfile, db: Db) -> GuestProfile:
    await db.run(Profile(guest).set(profile))
    return profile


@app.get("/guests/{guest}/profile")
async def get_profile(guest: str, db: Db) -> GuestProfile:
    profile = await db.run(Profile(guest).get())
    if profile is None:
        raise HTTPException(404)
    return profile


@app.put("/guests/{guest}/theme")
async def put_theme(guest: str, theme: GuestTheme, db: Db) -> GuestTheme:
    await db.run(Theme(guest).set(theme))
    return theme


@app.get("/guests/{guest}/badge")
async def get_badge(guest: str, db: Db) -> Response:
    badge = await db.run(Badge(guest).get())
    return Response(
        msgspec.json.encode(badge), media_type="application/json"
    )  # a Struct is not a Pydantic type


@app.post("/guests/{guest}/visits")
async def visit(guest: str, db: Db) -> int:
    return await db.run(Visits(guest).add(1))
