"""`clew keys create | list | revoke | rotate`: who may ask a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.options import AsJson, IndexPlace, StorageOptions, storage
from clew.cli.output import print_json, print_json_lines, print_text, say

if TYPE_CHECKING:
    from clew.daemon.keys import Keys

Where = Annotated[
    str, typer.Argument(metavar="CONFIG|ROOT", help="What `clew serve` serves: a configuration, or a folder or URL.")
]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="As `clew keys list` shows it.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    keys = typer.Typer(
        name="keys",
        help="Who may ask a service.",
        epilog="Example: clew keys create ./handbook, then clew keys list ./handbook",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    keys.command("create", epilog="Example: clew keys create ./handbook --path ops --expires 30d")(create)
    keys.command("list", epilog="Example: clew keys list ./handbook")(list_keys)
    keys.command("revoke", epilog="Example: clew keys revoke ./handbook 3f9c2d71a0b45e68")(revoke)
    keys.command("rotate", epilog="Example: clew keys rotate ./handbook 3f9c2d71a0b45e68 --after 1h")(rotate)
    app.add_typer(keys)


def _keys(where: str, place: str | None, storage_option: list[str] | None) -> Keys:
    from clew.cli.serving import require_packages
    from clew.connectors.location import Root

    require_packages()
    from clew.daemon.configuration import config_of_root, is_config, load_config
    from clew.daemon.http.server import key_store
    from clew.daemon.keys import Keys
    from clew.errors import OptionError

    if is_config(where):
        if place or storage_option:
            raise OptionError("--index and --storage-option go with a ROOT; a configuration says them itself.")
        return Keys(key_store(load_config(where)))
    options = storage(storage_option)
    Root.parse(where, options).require()
    return Keys(key_store(config_of_root(where, index=place, storage_options=options)))


def create(
    where: Where,
    scope: Annotated[
        str, typer.Option("--scope", metavar="search|full", help="What it may do: ask, or everything.")
    ] = "search",
    path: Annotated[
        list[str] | None,
        typer.Option("--path", metavar="PATH", help="A folder or file; nothing else will be known of. Again for more."),
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option("--collection", metavar="NAME", help="Only this one. Again for more.")
    ] = None,
    expires: Annotated[str | None, typer.Option("--expires", metavar="SPAN", help="30d, 12h, 90m.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", metavar="N", help="Requests a second.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="With --path: scores, too, tell nothing of the rest (slower at first).")
    ] = False,
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Whose it is, for the list.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown this once; what is kept is a hash."""
    from clew.daemon.keys import read_span
    from clew.errors import OptionError

    if scope not in ("search", "full"):
        raise OptionError(f"--scope {scope}: a key's scope is search or full.")
    if rate is not None and not 0 < rate < 1e6:
        raise OptionError(f"--rate {rate:g}: a rate is a number of requests a second, more than 0.")
    options: dict[str, Any] = {"scope": scope, "rate": rate, "note": note, "strict": strict}
    created = _keys(where, place, storage_option).create(
        paths=path or (),
        collections=collection or (),
        seconds=None if expires is None else read_span(expires),
        **options,
    )
    if as_json:
        print_json(created)
        return
    print_text(created.key)
    say(f"Key {created.id}. It is not shown again.")


def list_keys(
    where: Where, place: IndexPlace = None, storage_option: StorageOptions = None, as_json: AsJson = False
) -> None:
    """All keys, and what each allows; no secrets."""
    found = _keys(where, place, storage_option).list()
    if as_json:
        print_json_lines(found)
        return
    for key in found:
        state = "valid" if key.valid else ("revoked" if key.revoked else "expired")
        limits = [
            *(f"path {path}" for path in key.paths or ()),
            *(f"collection {one}" for one in key.collections or ()),
        ]
        if key.expires:
            limits.append(f"until {key.expires}")
        if key.rate:
            limits.append(f"{key.rate:g} a second")
        print_text(
            f"{key.id}  {state:<8}  {key.scope:<7}  {', '.join(limits) or 'everything'}  {key.note or ''}".rstrip()
        )


def revoke(
    where: Where,
    key_id: KeyId,
    after: Annotated[str | None, typer.Option("--after", metavar="SPAN", help="Let it be valid that long yet.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """End a key. Services notice within a second."""
    from clew.daemon.keys import read_span

    keys = _keys(where, place, storage_option)
    keys.revoke(key_id, after=0.0 if after is None else read_span(after))
    ended = next(key for key in keys.list() if key.id == key_id)
    if as_json:
        print_json(ended)
        return
    say(f"Key {key_id} is valid until {ended.revoked}." if ended.valid else f"Key {key_id} is revoked.")


def rotate(
    where: Where,
    key_id: KeyId,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="SPAN", help="Let the old one be valid that long yet; else it ends."),
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a new key with the rights of an old one, which ends."""
    from clew.daemon.keys import read_span

    created = _keys(where, place, storage_option).rotate(key_id, after=0.0 if after is None else read_span(after))
    if as_json:
        print_json(created)
        return
    print_text(created.key)
    say(f"Key {created.id}. It is not shown again; {key_id} ends{f' in {after}' if after else ' now'}.")
