"""The command: its arguments, its exit statuses, and messages without a traceback. What the commands do is tested with `build`."""

import subprocess
import sys

import pytest

from paperlib import __version__, build, cli, traces


@pytest.fixture
def called(monkeypatch):
    """Each command of `build` replaced by one that remembers its arguments and returns or raises `called.answer`."""

    class Called(list):
        answer = {}  # noqa: RUF012

        def __call__(self, name):
            def command(*arguments, **options):
                self.append((name, *arguments, options))
                if isinstance(self.answer, BaseException):
                    raise self.answer
                return self.answer

            return command

    called = Called()
    for name in ("figures", "verify", "refresh"):
        monkeypatch.setattr(build, name, called(name))
    return called


def test_arguments_reach_the_build(called, tmp_path):
    assert cli.main(["figures"]) == 0
    assert cli.main(["figures", "peva22/fig2", "aaai20", "--profile", "preview", "--jobs", "3", "--force", "--output", str(tmp_path)]) == 0
    assert cli.main(["verify", "peva22", "--jobs", "1"]) == 0
    assert cli.main(["refresh", "peva22/fig2"]) == 0
    assert called == [
        ("figures", [], {"profile": "paper", "jobs": None, "force": False, "output": None}),
        ("figures", ["peva22/fig2", "aaai20"], {"profile": "preview", "jobs": 3, "force": True, "output": tmp_path}),
        ("verify", ["peva22"], {"jobs": 1}),
        ("refresh", ["peva22/fig2"], {"jobs": None}),
    ]


@pytest.mark.parametrize("command", ["figures", "verify", "refresh"])
@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ({}, 0, ""),
        (None, 0, ""),
        ({"peva22/fig2": "ValueError: no"}, 1, ""),
        (build.BuildError("unknown figure 'x'; did you mean y?"), 2, "paperlib: unknown figure 'x'; did you mean y?\n"),
        (ValueError("bandwidth must be positive"), 2, "paperlib: bandwidth must be positive\n"),
        (OSError(28, "No space left on device", "CLAIMS.md"), 2, "paperlib: [Errno 28] No space left on device: 'CLAIMS.md'\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exit_status_and_message(called, capsys, command, answer, status, message):
    called.answer = answer
    assert cli.main([command]) == status
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["figure"], "invalid choice: 'figure'"),
        (["figures", "--jobs", "0"], "argument --jobs: must be a positive integer, got '0'"),
        (["figures", "--jobs", "-1"], "argument --jobs: must be a positive integer, got '-1'"),
        (["figures", "--jobs", "two"], "argument --jobs: must be a positive integer, got 'two'"),
        (["figures", "--jobs", "1.5"], "argument --jobs: must be a positive integer, got '1.5'"),
        (["verify", "--jobs", "0"], "argument --jobs: must be a positive integer, got '0'"),
        (["figures", "--profile", "papers"], "argument --profile: invalid choice: 'papers'"),
        (["figures", "--force=yes"], "argument --force: ignored explicit argument 'yes'"),
        (["verify", "--profile", "paper"], "unrecognized arguments: --profile"),
        (["wikipedia", "Title", "2020-04-01"], "the following arguments are required: END"),
    ],
)
def test_wrong_arguments(called, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert called == []


@pytest.mark.parametrize("command", [[], ["figures"], ["verify"], ["refresh"], ["wikipedia"]])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*command, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(" ".join(["usage: paperlib", *command]))
    assert out.count("\n") >= 5


def test_wikipedia(monkeypatch, capsys, tmp_path):
    seen = []
    monkeypatch.setattr(traces, "wikipedia", lambda *a, **o: seen.append((a, o)) or traces.load("debian_firefox_esr"))
    path = tmp_path / "page.csv"
    assert cli.main(["wikipedia", "A page", "2020-04-01", "2020-08-31", "--path", str(path), "--contact", "me@example.org"]) == 0
    ((arguments, options),) = seen
    assert arguments == ("A page", "2020-04-01", "2020-08-31")
    assert (options["path"], options["contact"]) == (path, "me@example.org")
    assert str(path) in capsys.readouterr().out


def test_as_a_process():
    """The real command, without a traceback for what the user can mend."""

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "paperlib", *arguments], capture_output=True, text=True)

    assert run("--version").stdout == f"paperlib {__version__}\n"
    wrong = run("figures", "peva22/fig99")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("paperlib: unknown figure 'peva22/fig99'; did you mean peva22/fig")
    assert wrong.stderr.count("\n") == 1
