"""The package, by lintian and by what is in it. Only where one was built."""

import re

import pytest

from tools import Tool, tool


@pytest.fixture(scope="module")
def deb():
    return tool("OVERTAKE_DEB")


@pytest.fixture(scope="module")
def unpacked(deb, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    Tool("dpkg-deb")("--extract", deb, root)
    return root


def test_lintian_has_nothing_to_say(deb):
    # The build is no Debian upload: nothing closes a bug, and time stamps are of today.
    left_out = "initial-upload-closes-no-bugs"
    assert Tool("lintian")("--fail-on", "error,warning", "--suppress-tags", left_out, deb) == ""


def test_everything_is_where_debian_has_it(unpacked):
    for path in (
        "usr/bin/overtake",
        "etc/overtake/overtake.toml",
        "usr/share/man/man1/overtake.1.gz",
        "usr/share/man/man1/overtake-queue-declare.1.gz",
        "usr/share/bash-completion/completions/overtake",
        "usr/share/zsh/vendor-completions/_overtake",
        "usr/share/fish/vendor_completions.d/overtake.fish",
        "usr/share/doc/overtake/copyright",
    ):
        assert (unpacked / path).is_file(), path


def test_the_unit_in_it_is_ours(unpacked, tree):
    (found,) = unpacked.rglob("overtake.service")
    assert found.read_text() == (tree / "packaging/systemd/overtake.service").read_text()


def test_the_binary_runs_and_takes_the_settings(unpacked, deb):
    overtake = Tool(unpacked / "usr/bin/overtake")
    version = re.search(r"_(.+?)-\d+_", deb.name)[1]
    assert overtake("--version") == f"overtake {version}\n"
    overtake("config", "check", "--no-files", "--config", unpacked / "etc/overtake/overtake.toml")


def test_the_documented_kafka_works_as_installed(unpacked, tmp_path):
    config = tmp_path / "kafka.toml"
    config.write_text('[endpoints.out]\nto.kafka = { brokers = ["kafka:9092"], topic = "t" }\n')
    Tool(unpacked / "usr/bin/overtake")("config", "check", "--no-files", "--config", config)


def test_what_is_there_of_settings_is_kept_and_what_it_needs_is_said(deb):
    control = Tool("dpkg-deb")("--field", deb, "Depends", "Recommends")
    for package in ("libc6", "procps", "tzdata"):
        assert package in control
    assert Tool("dpkg-deb")("--info", deb, "conffiles").strip() == "/etc/overtake/overtake.toml"
    scripts = {name: Tool("dpkg-deb")("--info", deb, name) for name in ("postinst", "prerm", "postrm")}
    assert "deb-systemd-invoke" in scripts["postinst"] and "/var/lib/overtake" in scripts["postrm"]
