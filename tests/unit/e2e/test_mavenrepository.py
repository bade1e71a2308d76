"""The files of a package lie where Maven's clients look for them."""

from boathouse_e2e import mavenrepository
from boathouse_e2e.mavenrepository import Package


def package(tmp_path):
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"jar")
    return Package(group="org.example.tests", artifact="reverse", version="1.0", jar=jar)


def test_a_package_is_a_pom_and_a_jar_below_its_group(tmp_path):
    files = package(tmp_path).files()
    folder = "org/example/tests/reverse/1.0"
    assert set(files) == {f"{folder}/reverse-1.0.pom", f"{folder}/reverse-1.0.jar"}
    assert b"<artifactId>reverse</artifactId>" in files[f"{folder}/reverse-1.0.pom"]
    assert files[f"{folder}/reverse-1.0.jar"] == b"jar"


def test_the_server_has_each_file_at_its_path(tmp_path):
    config_map, pod, _ = mavenrepository.manifests(package(tmp_path), namespace="here")
    items = pod["spec"]["volumes"][0]["configMap"]["items"]
    assert {item["path"] for item in items} == set(package(tmp_path).files())
    assert {item["key"] for item in items} == set(config_map["binaryData"])
