"""Flask with gunicorn: a database of the module, which every worker process may use after the fork.

gunicorn --preload --workers 2 --threads 4 examples.frameworks.flask_app:app
"""

from __future__ import annotations

import os

import msgspec
from examples.frameworks.guestbook import GuestTheme, Theme, Visits
from flask import Flask, Response, abort, jsonify, request

from keywright import connect
from keywright.errors import VariableError

db = connect(client_name="flask")  # REDIS_URL; with --preload in the parent of all workers
app = Flask(__name__)


@app.errorhandler(VariableError)
def invalid_id(error: VariableError) -> tuple[str, int]:
    return str(error), 404  # a name that no key can have


@app.errorhandler(msgspec.ValidationError)
def invalid_body(error: msgspec.ValidationError) -> tuple[str, int]:
    return str(error), 400


@app.put("/guests/<guest>/theme")
def put_theme(guest: str) -> Response:
    theme = msgspec.convert(request.get_json(), GuestTheme)  # checks the types
    db.run(Theme(guest).set(theme))
    return jsonify(theme)


@app.get("/guests/<guest>/theme")
def get_theme(guest: str) -> Response:
    theme = db.run(Theme(guest).get())
    if theme is None:
        abort(404)
    return jsonify(theme)


@app.post("/guests/<guest>/visits")
def visit(guest: str) -> Response:
    return jsonify(visits=db.run(Visits(guest).add(1)), worker=os.getpid())
