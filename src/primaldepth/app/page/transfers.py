"""Uploads to the page and downloads from it."""

import re
import secrets
import shutil
from pathlib import Path

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, JSONResponse, Response

from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.problems import Problem, RefusedError
from primaldepth.app.strict_forms import read_form

_FIELD = "files"
_SHOWN = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".glb": "model/gltf-binary"}
_DONE = b'data: {"msg": "done"}\n\n'


class Transfers:
    """Stores uploads in folders whose names cannot be guessed, and serves them.

    Args:
        folders: where they lie.
        types: suffixes of the files that are taken in.
    """

    def __init__(self, folders: VisitorFolders, types: frozenset[str]) -> None:
        self._folders, self._types = folders, types
        self._sources = ReadableFiles([folders.gradio])

    async def upload(self, request: Request) -> Response:
        """Keep the files of a form; the answer is the list of their paths, as Gradio's program expects."""
        await run_in_threadpool(self._folders.tidy)
        form = await read_form(request, repeated=_FIELD)
        try:
            files = [each for _, each in form.multi_items() if isinstance(each, UploadFile)]
            if not files or len(files) < len(form.multi_items()) or set(form) != {_FIELD}:
                raise HTTPException(400, f"expected files in the field '{_FIELD}' and nothing else")
            names = [self._checked(each.filename or "") for each in files]
            paths = [
                await run_in_threadpool(self._keep, each, name)
                for each, name in zip(files, names, strict=True)
            ]
        finally:
            await form.close()
        return JSONResponse([str(path) for path in paths])

    def _checked(self, name: str) -> str:
        """Return a name for a file: its own as far as it is harmless, with a suffix that the page takes."""
        suffix = Path(name).suffix.lower()
        if suffix not in self._types:
            message = "this file is of no type that the page takes"
            hint = f"upload one of {', '.join(sorted(self._types))}"
            raise RefusedError(Problem(415, "unsupported_format", message, hint))
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(name).stem)[:80]
        return f"{stem or 'file'}{suffix}"

    def _keep(self, upload: UploadFile, name: str) -> Path:
        folder = self._folders.gradio / secrets.token_hex(32)
        folder.mkdir(parents=True)
        with (folder / name).open("xb") as file:
            shutil.copyfileobj(upload.file, file)
        return folder / name

    def progress(self) -> Response:
        """Answer the browser's request for the progress of an upload: it has to wait for the end."""
        return Response(_DONE, media_type="text/event-stream")

    def download(self, path: str) -> Response:
        """Hand out a file; the browser shows pictures and meshes, and saves everything else."""
        try:
            found = self._sources.resolve(path)
        except RefusedError:
            raise HTTPException(404) from None
        if not found.is_file():
            raise HTTPException(404)
        kind = _SHOWN.get(found.suffix.lower())
        return FileResponse(
            found,
            media_type=kind or "application/octet-stream",
            headers={"Accept-Ranges": "none"},
            filename=found.name,
            content_disposition_type="inline" if kind else "attachment",
        )
