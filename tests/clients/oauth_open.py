"""Opens an address as a browser in which a person signs in, for programs that start one.

    SIGN_IN="CALLBACK USERNAME PASSWORD" [SIGN_IN_AT_PROVIDER=1] oauth_open.py ADDRESS
"""

import os
import sys
import urllib.request

from oauth_browser import Browser

callback, username, *password = os.environ["SIGN_IN"].split(" ")
at_provider = "SIGN_IN_AT_PROVIDER" in os.environ
sent_to = Browser(callback).allow(sys.argv[1], username, " ".join(password), at_provider)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
direct.open(sent_to, timeout=60).read()
