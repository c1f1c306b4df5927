"""Runs child processes: reads their output, measures them, and ends them."""
import os
import signal
import subprocess
import tempfile
import time

GRACE_SECONDS = 10  # between asking a process to end and killing it


class Failure(Exception):
    """Raised with one sentence for the user."""


class Finished:
    def __init__(self, text, seconds, peak_mib):
        self.text, self.seconds, self.peak_mib = text, seconds, peak_mib


class TimeIsUp(Exception):
    pass


def on_alarm(*_):
    raise TimeIsUp


def signal_group(group, number):
    """Returns False when no process of the group is left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end(process):
    """Ends the process and all that it started in its session. Asks first, so that they can remove
    unfinished files."""
    try:
        signal_group(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        # Its children may take longer than the process itself. poll() reaps the process: until then
        # a dead one still counts as part of the group.
        while time.monotonic() < deadline:
            process.poll()
            if not signal_group(process.pid, 0):
                break
            time.sleep(0.02)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()


def start(command, output, errors):
    try:
        # In a session of its own, so that a wrapper script and its children are ended together.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                start_new_session=True)
    except OSError as error:
        raise Failure(f"{command[0]} can't be run: {error.strerror}") from None


def last_line(file):
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def wait(process, limit):
    """Returns the output and the resource usage. Raises TimeIsUp after `limit` seconds."""
    # An alarm interrupts any wait, even for a pipe that another process keeps open.
    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        text = process.stdout.read()
        # wait4 reports the usage of this child alone.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return text, usage
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(command, limit):
    """Returns the command's output, wall time and peak memory. Raises Failure when it fails or
    takes more than `limit` seconds."""
    with tempfile.TemporaryFile() as errors:
        begin = time.monotonic()
        process = start(command, subprocess.PIPE, errors)
        try:
            text, usage = wait(process, limit)
            seconds = time.monotonic() - begin
        except BaseException as error:
            end(process)
            if isinstance(error, TimeIsUp):
                raise Failure(
                    f"{' '.join(command)} took more than {limit:g} seconds (--limit)") from None
            raise
        finally:
            process.stdout.close()
        if process.returncode != 0:
            said = last_line(errors)
            reason = f": {said}" if said else ""
            how = (f"was ended by signal {-process.returncode}" if process.returncode < 0
                   else f"failed with exit code {process.returncode}")
            raise Failure(f"{' '.join(command)} {how}{reason}")
    return Finished(text.decode(errors="replace"), seconds, usage.ru_maxrss / 1024)
