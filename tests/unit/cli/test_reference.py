from boathouse_cli import reference


def test_the_page_of_commands_is_what_the_commands_say():
    assert reference.PAGE.read_text() == reference.page(), "run `make manifests`"
