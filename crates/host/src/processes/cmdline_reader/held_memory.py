"""A process that holds up the reading of its memory, as a local user can.

Mounts a file system (FUSE) at the folder in argv[1] that answers everything but the reading of its only file. A child
maps the file. One of its threads reads the mapping through /proc/self/mem: it
keeps the memory lock for reading until the file system answers, which is never. Another thread wants the lock for
writing, so every further reader waits. Prints the child's pid once all of that holds. Ends with its stdin.
"""

import ctypes
import os
import struct
import subprocess
import sys
import threading

FOLDER = sys.argv[1]
LOOKUP, GETATTR, OPEN, READ, STATFS, INIT = 1, 3, 14, 15, 17, 26
ROOT, FILE, SIZE = 1, 2, 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    kind, size = (0o40755, 0) if node == ROOT else (0o100644, SIZE)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, kind, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """The body of the answer; None for no answer at all, a number for an error."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 0, 0, 0, 0)
    if opcode == LOOKUP:
        return struct.pack("<QQQQII", FILE, 0, 60, 60, 0, 0) + attributes(FILE)
    if opcode == GETATTR:
        return struct.pack("<QII", 60, 0, 0) + attributes(node)
    if opcode == OPEN:
        return struct.pack("<QII", 0, 0, 0)
    if opcode == READ:
        return None
    return 38


def serve(fuse, is_read):
    while True:
        request = os.read(fuse, 1 << 18)
        length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        if opcode in (2, 36):
            continue
        body = answer(opcode, node, request[40:])
        if body is None:
            is_read.set()
            continue
        error, body = (-body, b"") if isinstance(body, int) else (0, body)
        os.write(fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def hold(go):
    """In the child: takes the lock of its memory for good."""
    file = os.open(FOLDER + "/file", os.O_RDONLY)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    # PROT_READ, MAP_SHARED; the last mapping is anonymous.
    at = libc.mmap(None, 4096, 1, 1, file, 0)
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    threading.Thread(target=lambda: os.pread(memory, 8, at), daemon=True).start()
    os.read(go, 1)
    libc.mmap(None, 4096, 1, 0x22, -1, 0)


def is_held(pid):
    """True if the command line of the process does not arrive."""
    reader = subprocess.Popen(["cat", f"/proc/{pid}/cmdline"], stdout=subprocess.DEVNULL)
    try:
        reader.wait(timeout=0.5)
        return False
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.wait()
        return True


def main():
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"held", FOLDER.encode(), b"fuse", 0, options) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    is_read = threading.Event()
    threading.Thread(target=serve, args=(fuse, is_read), daemon=True).start()
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(fuse)
        # PR_SET_PDEATHSIG: SIGKILL
        libc.prctl(1, 9)
        hold(ready)
        os._exit(0)
    is_read.wait()
    os.write(go, b"x")
    while not is_held(pid):
        pass
    print(pid, flush=True)
    sys.stdin.read()
    os.kill(pid, 9)
    # The end of this process closes the file system, and with it the wait of the child.
    os._exit(0)


main()
