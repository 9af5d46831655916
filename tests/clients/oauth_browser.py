"""A person with a browser without scripts, who signs in and allows access."""

import re
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar


class Form(HTMLParser):
    """The first form of a page that has one of these fields."""

    def __init__(self, page, wanted):
        super().__init__()
        self.wanted, self.action, self.fields = wanted, None, {}
        self._open, self._current = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self._open, self._current = attributes.get("action", ""), {}
        elif self._open is not None and tag in ("input", "button") and attributes.get("name"):
            self._current[attributes["name"]] = attributes.get("value") or ""

    def handle_endtag(self, tag):
        if tag == "form" and self._open is not None:
            if self.action is None and any(name in self._current for name in self.wanted):
                self.action, self.fields = self._open, self._current
            self._open = None


class Browser:
    def __init__(self, callback):
        self.callback = callback
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        stay = type("Stay", (urllib.request.HTTPRedirectHandler,), {"redirect_request": lambda *_: None})
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies, stay)

    def open(self, url, fields=None):
        """Follows redirects until a page, or until the program's own address, which is returned."""
        data = None if fields is None else urllib.parse.urlencode(fields).encode()
        for _ in range(20):
            if url.startswith(self.callback):
                return url, ""
            try:
                origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
                headers = {} if data is None else {"Origin": origin}
                answer = self.opener.open(urllib.request.Request(url, data=data, headers=headers))
                return url, answer.read().decode()
            except urllib.error.HTTPError as error:
                if error.code not in (301, 302, 303, 307):
                    raise AssertionError(f"{url}: {error.code} {error.read().decode()[:500]}") from error
                url, data = urllib.parse.urljoin(url, error.headers["Location"]), None
        raise AssertionError(f"too many redirects: {url}")

    def allow(self, url, username, password, provider=None):
        """From a request for access to the address that the program is sent to."""
        url, page = self.open(url)
        for _ in range(10):
            if url.startswith(self.callback):
                return url
            if provider and "/login/provider" in page:
                link = re.search(r'href="([^"]*/login/provider[^"]*)"', page)
                url, page = self.open(urllib.parse.urljoin(url, link[1].replace("&amp;", "&")))
                provider = None
                continue
            form = Form(page, ("username", "login", "decision", "prompt"))
            assert form.action is not None, f"no form at {url}: {page[:800]}"
            answers = {"username": username, "login": username, "password": password, "decision": "allow"}
            fields = {name: answers.get(name, value) for name, value in form.fields.items()}
            url, page = self.open(urllib.parse.urljoin(url, form.action), fields)
        raise AssertionError(f"no way to the program: {url}")
