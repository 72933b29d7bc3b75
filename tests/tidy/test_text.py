"""What may not stand in any file, and links that have to lead somewhere."""

import pytest

from tests.tidy import rules


def texts():
    for path in rules.repository_files():
        text = rules.text_of(path)
        if text is not None:
            yield path, str(path.relative_to(rules.ROOT)), text


def test_nothing_is_left_unfinished():
    generated = rules.SERVICES / "ordercast" / "v1"
    errors = [
        error
        for path, name, text in texts()
        if rules.is_source(path) and not path.is_relative_to(generated)
        for error in rules.word_errors(text, name, rules.UNFINISHED)
    ]
    assert errors == []


def test_no_file_names_a_package_registry():
    errors = [e for _, name, text in texts() for e in rules.word_errors(text, name, rules.REGISTRIES)]
    assert errors == []


def test_lock_files_hold_only_versions_and_hashes():
    locks = [(name, text) for path, name, text in texts() if path.suffix == ".lock"]
    assert len(locks) >= 3
    assert [error for name, text in locks for error in rules.lock_errors(text, name)] == []


def test_every_relative_link_leads_to_a_file():
    documents = [(path, text) for path, _, text in texts() if path.suffix == ".md"]
    assert documents
    assert [error for path, text in documents for error in rules.link_errors(text, path)] == []


@pytest.mark.parametrize("word", rules.UNFINISHED_WORDS)
def test_an_unfinished_line_is_caught(word):
    assert len(rules.word_errors(f"x = 1\nraise {word}  # later", "a.py", rules.UNFINISHED)) == 1
    assert rules.word_errors(f"x = 1\n{word}_and_more = 2", "a.py", rules.UNFINISHED) == []


@pytest.mark.parametrize(
    "host", ["https://py" + "pi.org/simple", "files.python" + "hosted.org", "registry.npm" + "js.org"]
)
def test_the_name_of_a_registry_is_caught(host):
    assert len(rules.word_errors(f"x\n# from {host}\n", "requirements.txt", rules.REGISTRIES)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://mirror.example/simple",
        "--find-links wheels",
        "rich @ file:///wheels/rich.whl",
        "rich>=15",
        "# via typer",
        "-e .",
    ],
)
def test_a_lock_line_that_says_where_from_is_caught(line):
    good = f"rich==15.0.0 ; sys_platform == 'win32' \\\n    --hash=sha256:{'0' * 64}"
    assert rules.lock_errors(good, "dev.lock") == []
    assert len(rules.lock_errors(f"{good}\n{line}", "dev.lock")) == 1


@pytest.mark.parametrize(
    "markdown",
    [
        "see [this](no/such/file.md)",
        'see [this](no-such-file.md#part "title")',
        "![a picture](no-such-picture.svg)",
        "[this]\n\n[this]: no-such-file.md",
        '<img src="no-such-picture.svg">',
        "[from the top](/no-such-file.md)",
    ],
)
def test_a_dead_link_is_caught(markdown):
    assert len(rules.link_errors(markdown, rules.ROOT / "README.md")) == 1


@pytest.mark.parametrize(
    "markdown",
    [
        "[that](https://example.org/no-such-file.md)",
        "[below](#part)",
        "[build](Makefile) and [licence](/LICENSE#top)",
        "`[quoted](no-such-file.md)`",
        "```\n[quoted](no-such-file.md)\n```\n",
    ],
)
def test_a_living_link_is_let_through(markdown):
    assert rules.link_errors(markdown, rules.ROOT / "README.md") == []
