"""Forms that are cut off or can be read in two ways are refused, on the interface and on the page."""

import httpx2
import pytest
from malformed import depth_bytes, guide_bytes

END = b"--b--\r\n"


def part(name, content=b"x", more=b"", disposition=b"form-data"):
    head = b'--b\r\nContent-Disposition: %s; name="%s"%s\r\n' % (disposition, name, more)
    return head + b"\r\n" + content + b"\r\n"


def file_part(name, content, headers=b""):
    return part(name, content, b'; filename="a.png"' + headers)


GOOD = file_part(b"depth", depth_bytes()) + file_part(b"guide", guide_bytes())
NOISE = part(b"noise", b"5")
LONG = b"".join(b"\r\nX-%d: a" % index for index in range(20))
WRONG = {
    "no end": GOOD + NOISE,
    "cut in the end": GOOD + NOISE + b"--b-",
    "cut in a field": GOOD + NOISE[:-3],
    "cut in a header": GOOD + NOISE[:20],
    "goes on after its end": GOOD + END + NOISE + END,
    "text after its end": GOOD + END + b"epilogue",
    "field twice": GOOD + NOISE + NOISE + END,
    "file twice": GOOD + file_part(b"depth", depth_bytes()) + END,
    "file and text": GOOD + part(b"depth") + END,
    "name is no UTF-8": GOOD + part(b"nois\xe9") + END,
    "no name": GOOD + b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + END,
    "empty name": GOOD + part(b"") + END,
    "long name": GOOD + part(b"n" * 300) + END,
    "no disposition": GOOD + b"--b\r\n\r\nx\r\n" + END,
    "attachment": GOOD + part(b"noise", disposition=b"attachment") + END,
    "header twice": GOOD + part(b"noise", more=b'\r\nContent-Disposition: form-data; name="unit"') + END,
    "many headers": GOOD + part(b"noise", more=LONG) + END,
    "long header": GOOD + part(b"noise", more=b"\r\nX: " + b"a" * 9000) + END,
    "base64": GOOD + part(b"noise", more=b"\r\nContent-Transfer-Encoding: base64") + END,
    "form in a form": GOOD + part(b"noise", more=b"\r\nContent-Type: multipart/mixed; boundary=c") + END,
    "long text": GOOD + part(b"noise", b"1" * 70_000) + END,
    "many parts": GOOD + b"".join(part(b"f%d" % index) for index in range(30)) + END,
}
TYPE = {"Content-Type": "multipart/form-data; boundary=b"}


def post(client, body, headers=TYPE):
    return client.post("/v1/upsample", content=body, headers=headers)


def test_a_whole_form_is_answered(service):
    for body in (GOOD + END, GOOD + b"--b--", GOOD + NOISE + b"--b--\r\n\r\n"):
        assert post(service, body).status_code == 200


def test_a_boundary_that_is_only_a_part_of_the_content_ends_nothing(service):
    inside = part(b"noise", b"5--b--")
    answer = post(service, GOOD + inside + END)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_input")


@pytest.mark.parametrize("case", WRONG)
def test_a_doubtful_form_is_refused(service, case):
    answer = post(service, WRONG[case])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_end_is_seen_wherever_the_body_is_cut_into_chunks(service, size):
    def chunks(body):
        return (body[at : at + size] for at in range(0, len(body), size))

    assert post(service, chunks(GOOD + NOISE + END)).status_code == 200
    assert post(service, chunks(GOOD + NOISE)).status_code == 400
    assert post(service, chunks(GOOD + END + NOISE + END)).status_code == 400


def test_another_charset_is_refused(service):
    headers = {"Content-Type": "multipart/form-data; boundary=b; charset=utf-7"}
    assert post(service, GOOD + END, headers).status_code == 400


PAGE_WRONG = {
    "no end": file_part(b"files", b"x"),
    "goes on after its end": file_part(b"files", b"x") + END + file_part(b"files", b"x") + END,
    "text": part(b"files") + END,
    "another field": file_part(b"files", b"x") + part(b"noise") + END,
    "no file": END,
    "no form": b"",
    "many files": file_part(b"files", b"x") * 30 + END,
}


@pytest.mark.parametrize("case", PAGE_WRONG)
def test_a_doubtful_upload_to_the_page_is_refused(served, case):
    answer = httpx2.post(f"{served.url}/gradio_api/upload", content=PAGE_WRONG[case], headers=TYPE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
