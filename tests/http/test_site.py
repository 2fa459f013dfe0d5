#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The web page that is built in: test_site.py DAEMON [TEST...].

What the daemon serves is held against the folder that the page's build wrote, build/www, file by file. Where the page
was left out of this build (no node, or WITH_WEB=0), what is asked of its files is not tried.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import NotTried, receive_all, run_tests  # noqa: E402
from test_http import HOST, problem, start  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, SOURCES = ROOT / "build", ROOT / "server/www"
MEDIA = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
         "svg": "image/svg+xml", "json": "application/json", "png": "image/png", "txt": "text/plain; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; "
          "trusted-types lit-html")
KEPT = {False: "no-cache", True: "public, max-age=31536000, immutable"}


def path_of(name):
    """Where a file of the folder is served: index.html is its folder, a/b.html is /a/b."""
    return "/" + re.sub(r"\.html$", "", re.sub(r"(^|/)index\.html$", r"\1", name))


def site():
    """{path: file} of the page that was built in."""
    if b"site_embedded = {0}" in (BUILD / "site.c").read_bytes():
        raise NotTried("the page was left out of this build")
    folder = BUILD / "www"
    files = {path_of(file.relative_to(folder).as_posix()): file for file in folder.rglob("*") if file.is_file()}
    assert "/" in files, files
    return files


def node(*words, folder=SOURCES):
    """Runs node; (exit code, standard error)."""
    if not shutil.which("node"):
        raise NotTried("there is no node")
    done = subprocess.run(["node", *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr


# ---- what is sent ---------------------------------------------------------------------------------------------------

def test_every_file():
    """Each file of the folder, its media type, how long it may be kept; and HEAD says the same."""
    files = site()
    with start(admin=False) as daemon:
        for path, file in files.items():
            status, headers, body = daemon.get(path)
            assert status == 200 and body == file.read_bytes(), (path, status, len(body))
            assert headers["Content-Type"] == MEDIA[file.suffix[1:]], (path, headers["Content-Type"])
            assert headers["Content-Length"] == str(len(body)) and headers["Content-Encoding"] is None, path
            hashed = re.fullmatch(r"/assets/.*-[0-9A-Za-z]{8,}\.\w+", path) is not None
            assert headers["Cache-Control"] == KEPT[hashed] and headers["Vary"] == "Accept-Encoding", (path, str(headers))
            of_head = daemon.request("HEAD", path)
            own = {"Date", "X-Request-Id"}
            assert of_head[0] == 200 and of_head[2] == b"", path
            assert [h for h in of_head[1].items() if h[0] not in own] == [h for h in headers.items() if h[0] not in own], path


def test_gzip():
    """The twin inflates to the file, is smaller, and has a tag of its own; each is answered 304 to its own tag alone."""
    files, twins, tags = site(), 0, set()
    with start(admin=False) as daemon:
        for path, file in files.items():
            plain, zipped = daemon.get(path)[1], None
            status, headers, body = daemon.get(path, {"Accept-Encoding": "gzip, deflate, br"})
            assert status == 200, path
            if headers["Content-Encoding"] is not None:
                assert headers["Content-Encoding"] == "gzip" and len(body) < file.stat().st_size, path
                assert gzip.decompress(body) == file.read_bytes() and headers["Content-Length"] == str(len(body)), path
                assert body[3:8] == b"\0\0\0\0\0", (path, "a name or a time within", body[:10])
                assert headers["ETag"] != plain["ETag"], path
                zipped, twins = headers["ETag"], twins + 1
            for tag, coding in (plain["ETag"], "identity"), (zipped, "gzip"):
                if tag is not None:
                    status, headers, body = daemon.get(path, {"Accept-Encoding": coding, "If-None-Match": f'"x", {tag}'})
                    assert (status, body, headers["ETag"]) == (304, b"", tag), (path, coding, status)
                    assert headers["Cache-Control"] and headers["Vary"] == "Accept-Encoding", (path, str(headers))
                    other = "gzip" if coding == "identity" else "identity"
                    if zipped is not None:
                        assert daemon.get(path, {"Accept-Encoding": other, "If-None-Match": tag})[0] == 200, (path, other)
                    assert re.fullmatch(r'"[0-9a-f]{16}"', tag), tag
                    tags.add(tag)
    contents = {file.read_bytes() for file in files.values()}
    assert twins > 0 and len(tags) >= len(contents), (twins, len(tags))


def test_policy():
    """Documents come with the policy, word by word; what they are made of needs none."""
    files = site()
    with start(admin=False) as daemon:
        for path, file in files.items():
            html = POLICY if file.suffix == ".html" else None
            for coding in "gzip", "identity":
                headers = daemon.get(path, {"Accept-Encoding": coding})[1]
                assert headers.get_all("Content-Security-Policy") == (html and [html]), (path, coding)
                assert headers["Referrer-Policy"] == (html and "no-referrer"), path
                assert headers["Cross-Origin-Opener-Policy"] is None, path  # an error in consoles where the origin is no https
                assert headers["X-Content-Type-Options"] == "nosniff", path


def test_links():
    """What documents refer to is there, and nothing of it is elsewhere but where links for readers lead."""
    files = site()
    with start(admin=False) as daemon:
        for path, file in files.items():
            if file.suffix != ".html":
                continue
            for tag, name, value in re.findall(r"<(\w+)\b[^>]*?\s(href|src)=\"?([^\">\s]+)", file.read_text(encoding="utf-8")):
                target = urllib.parse.urljoin(f"http://here{path}", value.replace("&amp;", "&"))
                parts = urllib.parse.urlsplit(target)
                if parts.netloc == "here":
                    inside = parts.path + (f"?{parts.query}" if parts.query else "")
                    status, _, body = daemon.get(inside)
                    assert status == 200, (path, value, body[:200])
                else:
                    assert (tag, name) == ("a", "href"), (path, tag, value)


def test_the_query_is_the_page_s():
    """Whatever stands behind the path, the file is the same: a link may hold a figure's state."""
    files = site()
    with start(admin=False) as daemon:
        for query in "d_model=8&v.probe=3", "", "type=%", "a=b&a=b", "x" * 20000:
            status, _, body = daemon.get(f"/?{query}")
            assert status == 200 and body == files["/"].read_bytes(), (query[:20], status)


# ---- what is not ----------------------------------------------------------------------------------------------------

def test_methods():
    """The page is read: all else is a 405 that says so, a posted body or not."""
    paths = list(site())[:3] + ["/"]
    with start(admin=False) as daemon:
        for path in paths:
            for method in "POST", "PUT", "DELETE", "PATCH":
                status, headers, body = daemon.request(method, path, b"x" * 1000)
                assert status == 405 and headers["Allow"] == "GET, HEAD, OPTIONS", (method, path, status)
                assert problem(body)["field"] == "method", body
            status, headers, body = daemon.request("OPTIONS", path)
            assert (status, headers["Allow"], body) == (204, "GET, HEAD, OPTIONS", b""), path
            assert daemon.get(path)[0] == 200, path


def test_other_paths():
    """Only what the table names is there: what looks like a file beside it is a 404, or malformed, and a problem."""
    name = next((path for path in site() if path.startswith("/assets/")), "/assets/x")
    paths = ["/index.html", "/assets", "/assets/", "//", "/.", "/./", "/..", "/nope", "/de", "/labs", "/labs/", "/site.c", "/site.bin",
             "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/..%5c..%5cetc", "/assets/../index.html",
             "/assets/%2e%2e/", f"/.{name}", f"/{name}", f"{name}/", f"{name}.gz", f"{name}%20", name[:-1], name.upper(),
             f"/assets/..{name}", "/~root", "/%c0%ae%c0%ae/", "/\u00e9".encode().decode("latin-1"), "/" + "a" * 30000,
             "/" + "../" * 5000, "/" + "%2e%2e/" * 3000, "/?", "/;x", f"{name};x=1", f"{name}%3fx", "/%", "/%0", "/%zz", "/%00",
             f"{name}%00", "/%0d%0aX:y"]
    paths.remove("/?")  # that is the page itself
    with start() as daemon:
        for path in paths:
            data = daemon.raw(f"GET {path} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n".encode("latin-1"))
            status = int(data.split(b" ", 2)[1])
            assert status in (400, 404), (path[:60], status)
            assert b"content-type: application/problem+json" in data.lower() and b"<html" not in data, (path[:60], data[:200])
        for path in "/", name:
            status, _, body = daemon.get(path, port=daemon.admin_port)
            assert status == 404 and problem(body), (path, status)
        assert daemon.get("/healthz")[0] == 200


def test_other_spellings():
    """Percent-encoded letters of a path are the letters, as in all paths here; a whole URL is its path."""
    name = next((path for path in site() if path.startswith("/assets/")), None)
    with start(admin=False) as daemon:
        want = daemon.get(name)[2]
        for target in name.replace("assets", "%61ssets"), f"http://localhost{name}", name.replace("-", "%2d"):
            assert daemon.get(target)[::2] == (200, want), target


def test_one_after_the_other():
    """Files, API replies and problems on one connection, asked for at once, come whole and in order."""
    files = list(site().items())
    asked = [path for path, _ in files] + ["/v1/version", "/nope"]
    with start(admin=False) as daemon:
        requests = "".join(f"GET {path} HTTP/1.1\r\n{HOST}\r\n" for path in asked)
        data = daemon.raw((requests + f"GET / HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n").encode())
        for path, file in files + [("/", dict(files)["/"])]:
            head, _, rest = data.partition(b"\r\n\r\n")
            n = file.stat().st_size
            if path == "/" and b'{"version"' in rest[:20]:  # the last: first come the two that are no files
                for _ in range(2):
                    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
                    data = rest[length:]
                    head, _, rest = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200") and rest[:n] == file.read_bytes(), (path, head[:100])
            data = rest[n:]
        assert data == b"", data[:100]


def test_the_list_of_routes():
    """GET /v1 lists what there is, the page among it; GET / is that page, or says why there is none."""
    with start(admin=False) as daemon:
        routes = json.loads(daemon.get("/v1")[2])["routes"]
        assert {"GET /", "GET /v1", "GET /v1/encode", "POST /v1/encode"} <= set(routes), routes
        status, headers, body = daemon.get("/")
        assert status == 200
        if headers["Content-Type"] == "application/json":
            assert "npm" in json.loads(body)["detail"], body
        else:
            assert headers["Content-Type"] == MEDIA["html"] and body.lower().startswith(b"<!doctype html>"), body[:50]


# ---- how it is built ------------------------------------------------------------------------------------------------

def test_built_again():
    """The page built elsewhere is the same to the byte, also what the daemon is linked with."""
    site()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "www")
        assert node("build.mjs", out) == (0, ""), "the page's build"
        assert node("embed.mjs", out) == (0, ""), "embedding it"
        for name in "site.c", "site.bin":
            assert pathlib.Path(folder, name).read_bytes() == (BUILD / name).read_bytes(), name


def test_embedding():
    """Paths and codings of a folder as they are meant; the order in which files were made does not matter."""
    text = "word " * 100
    files = {"index.html": text, "de/index.html": text, "labs/order.html": text, "de/labs/order.html": text, "assets/a-0123ABCD.js": "x",
             "assets/plain.css": text, "labs.txt": text}
    results = []
    for names in list(files), list(reversed(files)):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "www")
            for name in names:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (out / name).write_text(files[name], encoding="utf-8")
            assert node("embed.mjs", out) == (0, "")
            results.append([pathlib.Path(folder, name).read_bytes() for name in ("site.c", "site.bin")])
    assert results[0] == results[1]
    rows = re.findall(r'\{"([^"]+)", "([^"]+)", (\w+), \{AT\((\d+)\), (\d+), "[^{]*\}, \{(?:AT\((\d+)\), (\d+)|0)', results[0][0].decode())
    assert [row[0] for row in rows] == sorted(map(path_of, files)), rows
    for path, media, immutable, at, n, zipped_at, zipped_n in rows:
        name = next(name for name in files if path_of(name) == path)
        bits = results[0][1]
        assert bits[int(at):int(at) + int(n)].decode() == files[name], path
        assert media == MEDIA[name.rsplit(".", 1)[1]] and immutable == str("0123ABCD" in name).lower(), path
        assert (zipped_at == "") == (len(files[name]) < 20), path  # one letter is no shorter zipped
        if zipped_at:
            assert gzip.decompress(bits[int(zipped_at):int(zipped_at) + int(zipped_n)]).decode() == files[name], path


def test_embedding_refuses():
    """What could not be served as it is meant ends the build, and the message names it."""
    def link(out):
        (out / "passwd.txt").symlink_to("/etc/passwd")

    def put(*names):
        def made(out):
            for name in names:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (out / name).write_text("x", encoding="utf-8")
        return made

    for what, made, said in (("no start", lambda out: None, "there is no index.html"), ("a link", link, "passwd.txt"),
                             ("a type that is not known", put("index.html", "a.xyz"), "a.xyz"),
                             ("a name with a space", put("index.html", "a b.js"), "a b.js"),
                             ("a name with a quote", put("index.html", 'a".js'), 'a".js'),
                             ("a hidden file", put("index.html", ".js"), ".js"),
                             ("no type", put("index.html", "README"), "README")):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "www")
            out.mkdir()
            made(out)
            code, text = node("embed.mjs", out)
            assert code == 1 and said in text and text.count("\n") == 1, (what, code, text)
            assert not pathlib.Path(folder, "site.c").exists(), what


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
