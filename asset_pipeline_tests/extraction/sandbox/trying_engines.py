"""An engine that tries what a captured decoder would, and tells what came of each try. Runs only caged.

Every try is a function that returns what it got, or raises. The request's password names the try.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from hostile_engines import Honest, with_facts

from asset_pipeline.extraction.engine import Request
from asset_pipeline.model import Extraction

LIBC = ctypes.CDLL(None, use_errno=True)


def _called(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _connect(kind: int, address: tuple[str, int] | str) -> Callable[[Request], object]:
    return lambda request: socket.socket(kind, socket.SOCK_STREAM).connect(address)  # type: ignore[arg-type]


def _listen(request: Request) -> object:
    return socket.create_server(("127.0.0.1", 0))


def _read(path: str) -> Callable[[Request], object]:
    return lambda request: Path(path.format(parent=os.getppid())).read_bytes()


def _read_neighbour(request: Request) -> object:
    return (request.document.parent / "neighbour" / "document").read_bytes()


def _list_neighbours(request: Request) -> object:
    return list(request.document.parent.iterdir())


def _write_document(request: Request) -> object:
    return request.document.write_bytes(b"other")


def _write_beside(request: Request) -> object:
    return (request.out.parent / "left").write_bytes(b"x")


def _write_system(request: Request) -> object:
    return Path("/tmp/asset-pipeline-was-here").write_bytes(b"x")


def _replace_out(request: Request) -> object:
    return request.out.rename(request.out.with_name("moved"))


def _open_up(request: Request) -> object:
    return request.out.chmod(0o777)


def _chmod_outside(request: Request) -> object:
    return request.document.parent.chmod(0o777)


def _chown_document(request: Request) -> object:
    return os.chown(request.document, 12345, 12345)


def _touch_document(request: Request) -> object:
    return os.utime(request.document, (0, 0))


def _execute(request: Request) -> object:
    return os.execv("/bin/true", ["true"])


def _execute_own(request: Request) -> object:
    program = request.out / "program"
    program.write_bytes(b"#!/bin/sh\n")
    return os.execv(program, ["program"])


def _execute_memory(request: Request) -> object:
    return os.memfd_create("program")


def _fork(request: Request) -> object:
    if os.fork() == 0:
        os._exit(0)
    return "forked"


def _fork_raw(request: Request) -> object:
    pid = _called(LIBC.syscall(ctypes.c_long(57), 0))
    if pid == 0:
        os._exit(0)
    return pid


def _signal(pid: Callable[[], int]) -> Callable[[Request], object]:
    return lambda request: os.kill(pid(), signal.SIGKILL)


def _signal_by_descriptor(request: Request) -> object:
    """Through a pipe of its own: the kernel tells its owner that there is something to read."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    return os.write(writing, b"x")


def _session(request: Request) -> object:
    return os.setsid()


def _group(request: Request) -> object:
    return os.setpgid(0, os.getpgid(os.getppid()))


def _outlive(request: Request) -> object:
    return _called(LIBC.prctl(1, 0, 0, 0, 0))


def _trace(request: Request) -> object:
    return _called(LIBC.ptrace(16, os.getppid(), 0, 0))


def _read_memory(request: Request) -> object:
    buffer = ctypes.create_string_buffer(8)
    place = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    return _called(LIBC.process_vm_readv(os.getppid(), place, 1, place, 1, 0))


def _raise_limit(request: Request) -> object:
    return resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _mount(request: Request) -> object:
    return _called(LIBC.mount(b"none", os.fsencode(request.out), b"tmpfs", 0, None))


def _new_namespace(request: Request) -> object:
    return _called(LIBC.unshare(0x10000000))


def _raw(number: int, *arguments: int) -> Callable[[Request], object]:
    return lambda request: _called(LIBC.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)))


def _device(request: Request) -> object:
    return os.mknod(request.out / "device", 0o060600, os.makedev(8, 0))


def _type_into_terminal(request: Request) -> object:
    return _called(LIBC.ioctl(0, 0x5412, b"x"))


def _link_in(request: Request) -> object:
    return os.link(request.document, request.out / "linked")


def _symlink(request: Request) -> object:
    return (request.out / "linked").symlink_to(request.document)


def _pipe(request: Request) -> object:
    return os.mkfifo(request.out / "pipe")


FORBIDDEN: dict[str, Callable[[Request], object]] = {
    "connect to the network": _connect(socket.AF_INET, ("127.0.0.1", 9)),
    "connect by IPv6": _connect(socket.AF_INET6, ("::1", 9)),
    "connect to a local socket": _connect(socket.AF_UNIX, "\0somewhere"),
    "listen": _listen,
    "read the accounts": _read("/etc/passwd"),
    "read the machine's name": _read("/etc/hostname"),
    "read its parent's environment": _read("/proc/{parent}/environ"),
    "read its parent's descriptors": lambda request: list(Path(f"/proc/{os.getppid()}/fd").iterdir()),
    "read a library": _read(os.__file__),
    "read another's document": _read_neighbour,
    "see who else works": _list_neighbours,
    "change its document": _write_document,
    "write beside its folder": _write_beside,
    "write elsewhere": _write_system,
    "move its folder": _replace_out,
    "open its folder to others": _open_up,
    "open the folder above to others": _chmod_outside,
    "give its document away": _chown_document,
    "change the times of its document": _touch_document,
    "run a program": _execute,
    "run a program of its own": _execute_own,
    "run a program from memory": _execute_memory,
    "fork": _fork,
    "fork past the library": _fork_raw,
    "kill its parent": _signal(os.getppid),
    "kill everything": _signal(lambda: -1),
    "have the kernel kill its parent": _signal_by_descriptor,
    "leave its session": _session,
    "join its parent's group": _group,
    "outlive its parent": _outlive,
    "trace its parent": _trace,
    "read its parent's memory": _read_memory,
    "raise its limits": _raise_limit,
    "mount": _mount,
    "make a namespace": _new_namespace,
    "load a kernel filter": _raw(321, 0, 0, 0),
    "use another queue of system calls": _raw(425, 1, 0),
    "keep a key": _raw(250, 0, 0, 0),
    "watch performance": _raw(298, 0, 0, 0, 0, 0),
    "handle page faults": _raw(323, 0),
    "make a device": _device,
    "type into a terminal": _type_into_terminal,
    "take a hard link in": _link_in,
    "make a symbolic link": _symlink,
    "make a pipe": _pipe,
}


def _thread(request: Request) -> object:
    done = []
    thread = threading.Thread(target=lambda: done.append(1))
    thread.start()
    thread.join()
    return done


def _own_files(request: Request) -> object:
    (request.out / "folder").mkdir()
    file = request.out / "folder" / "file"
    file.write_bytes(b"kept")
    file.rename(file.with_name("renamed")).unlink()
    (request.out / "folder").rmdir()
    (request.out / "file").write_bytes(b"kept")
    return (request.out / "file").read_bytes().decode()


def _own_document(request: Request) -> object:
    with request.document.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return mapped[:5].decode()


ALLOWED: dict[str, Callable[[Request], object]] = {
    "work in its folder": _own_files,
    "read its document": _own_document,
    "signal itself": lambda request: os.kill(os.getpid(), 0),
}
if os.geteuid() == 0:  # others are kept from threads too: the kernel counts them as processes
    ALLOWED["start a thread"] = _thread


class Tries(Honest):
    """Makes the try that the request's password names; answers with "refused", or with what it got."""

    def extract(self, request: Request) -> Extraction:
        attempt = (FORBIDDEN | ALLOWED)[request.password or ""]
        return with_facts(request, _came_of(attempt, request))


def _came_of(attempt: Callable[[Request], object], request: Request) -> str:
    try:
        return f"got {attempt(request)!r}"[:80]
    except (OSError, RuntimeError, ValueError) as error:
        return f"refused: {type(error).__name__}"


class FindsItselfFree(Honest):
    """Reads a document where it can read the accounts of the machine too, and says so by failing."""

    def extract(self, request: Request) -> Extraction:
        if _came_of(FORBIDDEN["read the accounts"], request).startswith("got"):
            raise RuntimeError
        return super().extract(request)
