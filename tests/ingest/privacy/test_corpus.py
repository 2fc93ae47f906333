"""Recall of masking on secrets that are generated when the test runs: kinds of services × types of files."""

import base64
import random
import string
from collections import defaultdict

from dowse.ingest.privacy.secrets import mask

ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits
RANDOM = random.Random(20)


def some(count: int, alphabet: str = ALNUM) -> str:
    """Random characters, with a digit and a letter among them."""
    return "".join(RANDOM.choice(alphabet) for _ in range(count - 2)) + "7b"


def encoded(count: int) -> str:
    return base64.b64encode(RANDOM.randbytes(count)).decode()


TOKENS = {
    "aws id": lambda: "AKIA" + "".join(RANDOM.choice(UPPER) for _ in range(16)),
    "github": lambda: "ghp_" + some(36),
    "github fine": lambda: "github_pat_" + some(22) + "_" + some(59),
    "gitlab": lambda: "glpat-" + some(20),
    "gitlab runner": lambda: "glrt-" + some(20),
    "slack bot": lambda: f"xoxb-{some(12, '0123456789')}-{some(24)}",
    "slack app": lambda: f"xapp-1-A{some(10)}-{some(40, HEX)}",
    "stripe": lambda: "sk_live_" + some(24),
    "stripe hook": lambda: "whsec_" + some(32),
    "openai": lambda: "sk-proj-" + some(48),
    "google": lambda: "AIza" + some(35),
    "google oauth": lambda: "ya29." + some(60),
    "google client": lambda: "GOCSPX-" + some(28),
    "npm": lambda: "npm_" + some(36),
    "pypi": lambda: "pypi-AgEIcHlwaS5vcmc" + some(80),
    "rubygems": lambda: "rubygems_" + some(48, HEX),
    "sendgrid": lambda: f"SG.{some(22)}.{some(43)}",
    "huggingface": lambda: "hf_" + some(34),
    "do": lambda: "dop_v1_" + some(64, HEX),
    "vault": lambda: "hvs." + some(90),
    "docker": lambda: "dckr_pat_" + some(27),
    "shopify": lambda: "shpat_" + some(32, HEX),
    "grafana": lambda: "glsa_" + some(32) + "_" + some(8, HEX),
    "atlassian": lambda: "ATATT3xFfGF0" + some(180),
    "age": lambda: "AGE-SECRET-KEY-1" + "".join(RANDOM.choice(UPPER) for _ in range(58)),
    "mailgun": lambda: "key-" + some(32, HEX),
    "databricks": lambda: "dapi" + some(32, HEX),
    "new relic": lambda: "NRAK-" + some(27),
    "linear": lambda: "lin_api_" + some(40),
    "square": lambda: "sq0atp-" + some(22),
    "twilio": lambda: "SK" + some(32, HEX),
    "brevo": lambda: f"xkeysib-{some(64, HEX)}-{some(16)}",
    "doppler": lambda: "dp.pt." + some(43),
    "dynatrace": lambda: (
        "dt0c01."
        + "".join(RANDOM.choice(UPPER) for _ in range(24))
        + "."
        + "".join(RANDOM.choice(UPPER) for _ in range(64))
    ),
    "hubspot": lambda: "pat-na1-" + "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12)),
    "planetscale": lambda: "pscale_tkn_" + some(43),
    "postman": lambda: f"PMAK-{some(24, HEX)}-{some(34, HEX)}",
    "sentry": lambda: "sntrys_" + some(80),
    "tailscale": lambda: f"tskey-auth-{some(16)}-{some(24)}",
    "figma": lambda: "figd_" + some(40),
    "telegram": lambda: f"{RANDOM.randrange(10**8, 10**9)}:AA{some(33)}",
    "discord": lambda: f"MT{some(24)}.{some(6)}.{some(38)}",
    "jwt": lambda: f"eyJ{some(20)}.eyJ{some(60)}.{some(43)}",
    "mailchimp": lambda: some(32, HEX) + "-us12",
    "supabase": lambda: "sbp_" + some(40, HEX),
    "groq": lambda: "gsk_" + some(52),
    "flutterwave": lambda: "FLWSECK_TEST-" + some(32, HEX),
    "azure ad": lambda: f"{some(3)}8Q~{some(34)}",
}
NAMES = ("db_password", "API_TOKEN", "client_secret", "apiKey", "passphrase", "AWS_SECRET_ACCESS_KEY")
# How each type of file gives a value to a name. {n} is the name, {v} the value.
FILES = {
    "py": [
        '{n} = "{v}"',
        '{n}: str = "{v}"',
        "{n} = b'{v}'",
        'connect({n}="{v}")',
        '{n} = (\n    "{v}"\n)',
        '{n} = """{v}"""',
    ],
    "go": ['const {n} string = "{v}"', '{n} := "{v}"', "var {n} = `{v}`"],
    "ts": ["const {n}: string = '{v}';", 'x["{n}"] = "{v}"'],
    "java": ['private static final String {n} = "{v}";', 'config.set_{n}("{v}");'],
    "rs": ['let {n}: &str = "{v}";', 'const {n}: &\'static str = "{v}";'],
    "yaml": [
        '{n}: "{v}"',
        "{n}: {v}",
        "{n}: |\n  {v}",
        "x: {{ {n}: '{v}' }}",
        "{n}: &anchor {v}",
        "- name: {n}\n  value: {v}",
    ],
    "json": ['{{"{n}": "{v}"}}', '{{"name": "{n}", "value": "{v}"}}', '{{"x": "{{\\"{n}\\": \\"{v}\\"}}"}}'],
    "env": ["{n}={v}", "export {n}='{v}'"],
    "ini": ["{n} = {v}", "{n}={v}"],
    "toml": ['{n} = "{v}"'],
    "tf": ['{n} = "{v}"', 'variable "{n}" {{\n  type = string\n  default = "{v}"\n}}'],
    "xml": ["<{n}>{v}</{n}>", '<add {n}="{v}" />'],
    "Dockerfile": ["ENV {n}={v}", "ENV {n} {v}"],
    "md": ["| {n} | `{v}` |", "`{n}={v}`"],
}
PLACES = {
    "url": lambda v: f"postgres://app:{v}@db:5432/app",
    "ado": lambda v: f'"Server=db;User Id=sa;Password={v};Encrypt=true"',
    "jdbc": lambda v: f'"jdbc:mysql://db/app?user=a&password={v}"',
    "netrc": lambda v: f"machine example.org login ada password {v}",
    "pgpass": lambda v: f"db.example.org:5432:app:ada:{v}",
    "npmrc": lambda v: f"//registry.example.org/:_authToken={v}",
    "curl": lambda v: f"curl -s -u ada:{v} https://example.org",
    "mysql": lambda v: f"mysql -h db -u root -p{v} app",
    "header": lambda v: f"curl -H 'PRIVATE-TOKEN: {v}' https://example.org",
    "flag": lambda v: f"deploy --password={v}",
    "bearer": lambda v: f"Authorization: Bearer {v}",
    "secret yaml": lambda v: f"kind: Secret\nmetadata:\n  name: x\ndata:\n  plain: {v}\n",
    "secret list": lambda v: f"kind: List\nitems:\n  - kind: Secret\n    data:\n      plain: {v}\n",
    "secret flow": lambda v: f"kind: Secret\ndata: {{plain: {v}}}\n",
    "secret json": lambda v: f'{{"kind": "Secret", "data": {{"plain": "{v}"}}}}',
}


def planted() -> list[tuple[str, str, str]]:
    """Kind, text and secret."""
    rows = []
    for number, (kind, make) in enumerate(TOKENS.items()):
        for step in range(4):
            shapes = FILES[sorted(FILES)[(number * 4 + step) % len(FILES)]]
            value = make()
            rows.append((kind, "a = 1\n" + shapes[step % len(shapes)].format(n="value", v=value) + "\nb = 2\n", value))
    for file, shapes in FILES.items():
        for shape in shapes:
            for name in NAMES:
                value = some(18) + "x"
                rows.append((f"named in {file}", "a = 1\n" + shape.format(n=name, v=value) + "\nb = 2\n", value))
    for kind, place in PLACES.items():
        for length in (12, 18, 24):
            value = some(length)
            rows.append((kind, place(value) + "\n", value))
    for _ in range(4):
        auth = encoded(24).rstrip("=")
        rows.append(("docker auth", f'{{"auths": {{"r.example.org": {{"auth": "{auth}"}}}}}}', auth))
        body = encoded(48)
        rows.append(("putty", f"Private-Lines: 1\n{body}\nPrivate-MAC: 00\n", body))
    return rows


def test_recall_on_planted_secrets() -> None:
    rows = planted()
    missed = defaultdict(list)
    for kind, text, secret in rows:
        if secret in mask(text)[0]:
            missed[kind].append(text)
    count = sum(map(len, missed.values()))
    assert len(rows) >= 400
    assert len({kind for kind, _, _ in rows}) >= 40
    assert len(FILES) >= 14
    assert count <= 0.03 * len(rows), f"{count} of {len(rows)} are not masked: {dict(missed)}"


def test_every_kind_is_masked_at_least_once() -> None:
    found = defaultdict(list)
    for kind, text, secret in planted():
        found[kind].append(secret not in mask(text)[0])
    assert [kind for kind, masked in found.items() if not any(masked)] == []
