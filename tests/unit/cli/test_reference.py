from boathouse_e2e import commands_page


def test_the_page_of_commands_is_what_the_commands_say():
    assert commands_page.PAGE.read_text() == commands_page.page(), "run `make manifests`"
