"""Edits: the form of a key or of a new one, the commands that it leads to, the result, and its undo."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.errors import StoredDataError, UsageError, VariableError
from keywright.explorer.atlas import Sheet, key_url, query_of, quoted
from keywright.explorer.edit_forms import EditForm, InvalidInput
from keywright.explorer.edit_states import State
from keywright.explorer.edits import Edit
from keywright.explorer.explorer import Explorer, Here, explorer_of, own_form, page
from keywright.explorer.inputs import Input
from keywright.explorer.json_pages import exact, prefers_json
from keywright.explorer.key_reader import read
from keywright.explorer.presentation import Presenter
from keywright.keyspace import Key
from keywright.tools.describe.plain import inspected

__all__ = ["edit", "edit_apply", "edit_form", "edit_plan", "edit_undo", "new_form", "new_plan"]

LARGEST_EDIT = 2 << 20
LONGEST_NAME = 64 * 1024
OVERTAKEN = (
    "The key was changed since it was shown, so nothing was written. Its present values are beside yours: "
    "send the form again to write yours."
)
NEW_SHAPE = "shape"


async def edit_form(request: Request) -> Response:
    """Show the form of one edit of a key."""
    form = _form(request)
    state = await form.state()
    return _form_page(request, form, state, _filled(form, state), refusal=form.refusal(state))


async def edit_plan(request: Request) -> Response:
    """Plan an edit from the texts of a form: show its commands, or the form with its problems."""
    texts = await _writing(request)
    form = _form(request)
    return await _planned(request, form, texts)


async def new_form(request: Request) -> Response:
    """Show the form of a new key: its variables, then its value."""
    explorer, sheet = explorer_of(request), _sheet(request)
    found = _new_key(request, explorer, sheet, request.query_params)
    return _new_page(request, sheet, request.query_params, found)


async def new_plan(request: Request) -> Response:
    """Redirect to the form of a new key with these variables."""
    explorer, sheet = explorer_of(request), _sheet(request)
    texts = await _writing(request)
    found = _new_key(request, explorer, sheet, texts)
    if isinstance(found, Key):
        action = next(form.action for form in explorer.roles.forms(sheet.kind) if form.creates)
        query = {"action": action} | ({NEW_SHAPE: texts[NEW_SHAPE]} if texts.get(NEW_SHAPE) else {})
        name = explorer.db.context.name(found)
        return RedirectResponse(f"/key/edit?name={quoted(name)}&{urlencode(query)}", 303)
    return _new_page(request, sheet, texts, found, status=422)


async def edit(request: Request) -> Response:
    """Show one edit: its commands, or its result."""
    return await _edit_page(request, _edit(request))


async def edit_apply(request: Request) -> Response:
    """Write the edit that the page showed."""
    texts = await _writing(request)
    found = _edit(request)
    try:
        await explorer_of(request).edits.apply(found, texts.get("plan", ""))
    except UsageError as error:
        raise HTTPException(409, str(error)) from error
    return await _answered(request, found, 409 if found.state == "overtaken" else 200)


async def edit_undo(request: Request) -> Response:
    """Take an edit back."""
    await _writing(request)
    found = _edit(request)
    try:
        await explorer_of(request).edits.undo(found)
    except UsageError as error:
        raise HTTPException(409, str(error)) from error
    return await _answered(request, found, 409 if found.state == "kept" else 200)


async def _planned(request: Request, form: EditForm, texts: Mapping[str, str]) -> Response:
    explorer = explorer_of(request)
    state = await form.state()
    refusal = form.refusal(state)
    if form.action == "remove" and state.facts.size == 1 and explorer.roles.listing(form.key, present=False):
        refusal = "It is the only entry of a key that an index lists. Delete the key."
    inputs = _filled(form, state)
    if refusal is not None:
        return _form_page(request, form, state, inputs, refusal=refusal, status=409)
    if texts.get("seen") != state.seen:
        return _form_page(request, form, state, _kept(inputs, texts, {}), problem=OVERTAKEN, status=409)
    try:
        change = await form.change(state, texts)
        listing = []
        if not state.exists or form.action == "delete":
            listing = explorer.roles.listing(form.key, present=not state.exists)
        planned = explorer.edits.plan(
            form.title, form.key, change._replace(writes=[*change.writes, *listing])
        )
    except InvalidInput as invalid:
        kept = _kept(inputs, texts, invalid.problems)
        return _form_page(request, form, state, kept, problem=invalid.problems.get(""), status=422)
    except (UsageError, StoredDataError) as error:
        kept = _kept(inputs, texts, {})
        return _form_page(request, form, state, kept, problem=str(error), status=422)
    return await _answered(request, planned, 200)


async def _answered(request: Request, found: Edit, status: int) -> Response:
    """Redirect a browser to the page of an edit, unless it failed; send its document to a program."""
    if status == 200 and not prefers_json(request.headers.get("accept", "")):
        return RedirectResponse(f"/edit/{found.number}", 303)
    return await _edit_page(request, found, status)


async def _edit_page(request: Request, found: Edit, status: int = 200) -> Response:
    explorer = explorer_of(request)
    reading = await read(explorer.db, found.key)
    document = {
        "number": found.number,
        "title": found.title,
        "name": exact(found.name),
        "url": key_url(found.name),
        "state": found.state,
        "commands": found.commands,
        "removes_data": found.removes,
        "plan": found.mark,
        "problem": found.problem,
        "undo_file": str(found.undo_file) if found.can_undo else None,
        "now": reading.inspection and inspected(reading.inspection),
    }
    sheet = explorer.atlas.sheets[type(found.key)]
    return page(
        request,
        "edit_plan.html",
        document,
        status=status,
        here=Here(sheet.space.name, sheet.about.name),
        edit=found,
        sheet=sheet,
        now=None if reading.inspection is None else Presenter().inspected(reading.inspection),
    )


def _form_page(
    request: Request,
    form: EditForm,
    state: State,
    inputs: list[Input],
    *,
    refusal: str | None = None,
    problem: str | None = None,
    status: int = 200,
) -> Response:
    explorer = explorer_of(request)
    name = explorer.db.context.name(form.key)
    sheet = explorer.atlas.sheets[type(form.key)]
    session = request.scope["state"]["session"]
    document = {
        "name": exact(name),
        "entry": form.entry and exact(form.entry),
        "action": form.action,
        "title": form.title,
        "exists": state.exists,
        "refusal": refusal,
        "problem": problem,
        "seen": state.seen,
        "mark": explorer.access.form_mark(session),
        "inputs": msgspec.to_builtins(inputs),
    }
    return page(
        request,
        "edit.html",
        document,
        status=status,
        here=Here(sheet.space.name, sheet.about.name),
        form=form,
        name=name,
        sheet=sheet,
        state=state,
        inputs=inputs,
        shapes=form.shapes() if not state.exists else [],
        refusal=refusal,
        problem=problem,
    )


def _new_page(
    request: Request,
    sheet: Sheet,
    texts: Mapping[str, str],
    found: Key | VariableError | None,
    status: int = 200,
) -> Response:
    explorer = explorer_of(request)
    problem = str(found) if isinstance(found, VariableError) else None
    why_not = explorer.roles.why_not(sheet.kind)
    if why_not is None and not any(form.creates for form in explorer.roles.forms(sheet.kind)):
        why_not = f"A {sheet.about.kind} is not created here. Write it in a program."
    document = {
        "template": sheet.about.name,
        "variables": [variable.name for variable in sheet.about.variables],
        "refusal": why_not,
        "problem": problem,
        "mark": explorer.access.form_mark(request.scope["state"]["session"]),
    }
    return page(
        request,
        "new.html",
        document,
        status=status,
        here=Here(sheet.space.name, sheet.about.name),
        sheet=sheet,
        about=sheet.about,
        asked=texts,
        problem=problem,
        refusal=why_not,
    )


def _new_key(
    request: Request, explorer: Explorer, sheet: Sheet, texts: Mapping[str, str]
) -> Key | VariableError | None:
    """Return the key of the variables, the error if one is invalid, or None if some are missing."""
    _require_write(request)
    names = sheet.kind.declaration.template.variables
    if any(name not in texts for name in names) and names:
        return None
    try:
        return explorer.atlas.key_from(sheet, texts)
    except VariableError as error:
        return error


def _sheet(request: Request) -> Sheet:
    found = explorer_of(request).atlas.named(request.path_params["space"], request.path_params["name"])
    if found is None:
        raise HTTPException(404, "The explored keyspaces have no such template.")
    return found


def _form(request: Request) -> EditForm:
    _require_write(request)
    explorer = explorer_of(request)
    asked = query_of(request.scope["query_string"])
    name = asked.get("name", b"")
    if not name or len(name) > LONGEST_NAME:
        raise HTTPException(400, "The key name is missing or too long. Use /key/edit?name=…")
    key = explorer.atlas.key_of(name)
    if key is None:
        raise HTTPException(404, "No template matches this name, so it cannot be edited here.")
    entry = asked.get("entry") or None
    action = asked.get("action", b"").decode("utf-8", "replace")
    if not action:
        offered = explorer.roles.offered(type(key), entry=entry is not None, exists=True)
        action = offered[0].action if offered else ""
    number = asked.get(NEW_SHAPE, b"0")
    shape = int(number) if number.isdigit() and len(number) < 4 else 0
    form = explorer.roles.form(explorer.db, key, action, entry, shape)
    if form is None:
        why = explorer.roles.why_not(type(key)) or "There is no such edit of this key."
        raise HTTPException(404, why)
    return form


def _edit(request: Request) -> Edit:
    found = explorer_of(request).edits.edit(request.path_params["number"])
    if found is None:
        raise HTTPException(404, "There is no such edit. The explorer keeps the last 20, until it ends.")
    return found


async def _writing(request: Request) -> dict[str, str]:
    form = await own_form(request, LARGEST_EDIT)
    _require_write(request)
    return form


def _require_write(request: Request) -> None:
    if not explorer_of(request).settings.write:
        raise HTTPException(403, "This explorer is read-only. Start it with --write to edit.")


def _filled(form: EditForm, state: State) -> list[Input]:
    return form.inputs(state) if state.as_declared else []


def _kept(inputs: list[Input], texts: Mapping[str, str], problems: Mapping[str, str]) -> list[Input]:
    """Return the inputs with the texts that were entered; the text of a secret is not sent back."""
    kept = []
    for each in inputs:
        text = texts.get(each.name)
        changed = text is not None and each.sort != "secret" and not each.fixed and text != each.text
        stored = each.text if changed and not problems else None
        kept.append(
            msgspec.structs.replace(
                each, text=text if changed else each.text, stored=stored, problem=problems.get(each.name)
            )
        )
    return kept
