"""Names under which the service may be asked, and requests that pages of other sites make."""

import pytest
from malformed import good_files
from pydantic import ValidationError

from primaldepth.app.host_checks import HostChecks, check_site
from primaldepth.app.problems import RefusedError
from primaldepth.app.service_settings import ServiceSettings


def knows(hosts, name):
    try:
        hosts.check({"host": name})
    except RefusedError as error:
        return error.problem.status != 421
    return True


OWN = ["localhost", "LOCALHOST:7860", "localhost.", "127.0.0.1", "127.0.0.1:7860", "127.9.9.9", "[::1]:7860"]
FOREIGN = [
    *("evil.example", "127.0.0.1.evil.example", "localhost.evil", "127.1", "0x7f000001", "2130706433"),
    *("user@localhost", "localhost/", "localhost:x", "localhost, evil", "[::1", "", " ", "*", "lo calhost"),
]


@pytest.mark.parametrize("name", OWN)
def test_a_service_is_asked_by_the_names_of_its_machine(name):
    assert knows(HostChecks("127.0.0.1"), name)


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0", "::1", "depth.example.org"])  # noqa: S104 - only compared
def test_a_name_that_anybody_can_let_point_here_is_refused(bound, name):
    assert not knows(HostChecks(bound), name)


def test_addresses_are_refused_unless_the_service_listens_there():
    assert not knows(HostChecks("127.0.0.1"), "192.168.1.5")
    assert knows(HostChecks("192.168.1.5"), "192.168.1.5:7860")
    assert not knows(HostChecks("192.168.1.5"), "192.168.1.6")
    for everywhere in ("0.0.0.0", "::"):  # noqa: S104 - only compared
        assert knows(HostChecks(everywhere), "192.168.1.5:7860")
        assert knows(HostChecks(everywhere), "[2001:db8::5]")


def test_an_operator_allows_names():
    settings = ServiceSettings(allowed_hosts=("Depth.Example.ORG.", "10.0.0.1"))
    hosts = HostChecks(settings.host, settings.allowed_hosts)
    assert knows(hosts, "depth.example.org:443")
    assert knows(hosts, "10.0.0.1")
    assert not knows(hosts, "www.depth.example.org")
    assert knows(HostChecks("127.0.0.1", ("*",)), "evil.example")
    assert not knows(HostChecks("127.0.0.1", ("*",)), "evil/example")


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "a/b", "", "*.example.org", "a b"])
def test_what_is_no_name_cannot_be_allowed(name):
    with pytest.raises(ValidationError, match="name of a host alone"):
        ServiceSettings(allowed_hosts=(name,))


@pytest.mark.parametrize("path", ["/healthz", "/v1/methods", "/metrics", "/"])
def test_another_host_is_refused_everywhere(service, path):
    answer = service.get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host")
    assert "--allowed-host" in answer.json()["error"]["hint"]


def test_another_host_behind_a_proxy_is_refused(service):
    headers = {"X-Forwarded-Host": "evil.example"}
    assert service.get("/v1/methods", headers=headers).status_code == 421
    assert service.get("/v1/methods", headers={"X-Forwarded-Host": "localhost"}).status_code == 200


def test_a_host_that_was_allowed_is_answered(start):
    client = start(allowed_hosts=("depth.example.org",))
    assert client.get("/v1/methods", headers={"Host": "depth.example.org"}).status_code == 200


FOREIGN_SITES = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "http://127.0.0.1:99999999"},
]


@pytest.mark.parametrize("headers", FOREIGN_SITES, ids=str)
def test_a_page_of_another_site_cannot_make_a_browser_send_a_form(service, headers):
    answer = service.post("/v1/upsample", files=good_files(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
    assert service.get("/v1/methods", headers=headers).status_code == 200


OWN_SITES = [
    ({}, "127.0.0.1:7860"),
    ({"sec-fetch-site": "same-origin"}, "127.0.0.1:7860"),
    ({"sec-fetch-site": "none"}, "127.0.0.1:7860"),
    ({"sec-fetch-site": "same-origin", "origin": "https://depth.example.org"}, "127.0.0.1:7860"),
    ({"origin": "http://127.0.0.1:7860"}, "127.0.0.1:7860"),
    ({"origin": "http://[::1]:7860"}, "[::1]:7860"),
    ({"origin": "https://depth.example.org"}, "depth.example.org"),
    ({"origin": "https://depth.example.org:8443"}, "depth.example.org"),
]


@pytest.mark.parametrize(("headers", "host"), OWN_SITES, ids=str)
def test_the_service_s_own_page_and_programs_may_send(headers, host):
    check_site("POST", "/v1/upsample", {**headers, "host": host})


def test_another_port_of_this_machine_is_another_site():
    with pytest.raises(RefusedError, match="another site"):
        check_site("POST", "/v1/upsample", {"origin": "http://192.168.1.5", "host": "192.168.1.5:7860"})


def test_streams_of_the_page_are_not_opened_for_another_site():
    headers = {"sec-fetch-site": "cross-site", "host": "127.0.0.1"}
    with pytest.raises(RefusedError, match="another site"):
        check_site("GET", "/gradio_api/heartbeat/a", headers)
    check_site("GET", "/", headers)
