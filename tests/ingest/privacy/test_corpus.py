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
    "1password": lambda: "A3-" + "-".join(some(n, UPPER).upper() for n in (6, 6, 5, 5, 5, 5)),
    "adobe": lambda: "p8e-" + some(32),
    "airtable": lambda: f"pat{some(14)}.{some(64, HEX)}",
    "anthropic": lambda: "sk-ant-api03-" + some(93) + "AA",
    "artifactory reference": lambda: "cmVmd" + some(59),
    "bedrock": lambda: "ABSK" + some(120),
    "clickhouse": lambda: "4b1d" + some(38),
    "facebook": lambda: f"{RANDOM.randrange(10**15, 10**16)}|{some(32)}",
    "gitlab oauth": lambda: "gloas-" + some(64),
    "grafana legacy": lambda: "eyJrIjoi" + some(80),
    "harness": lambda: f"pat.{some(22)}.{some(24)}.{some(20)}",
    "huggingface letters": lambda: "hf_" + "".join(RANDOM.choice(string.ascii_letters) for _ in range(34)),
    "infracost": lambda: "ico-" + some(32),
    "intra42": lambda: "s-s4t2ud-" + some(64, HEX),
    "lob": lambda: "live_" + some(35, HEX),
    "maxmind": lambda: f"{some(6)}_{some(29)}_mmk",
    "octopus": lambda: "API-" + some(26, UPPER).upper(),
    "okta": lambda: "00" + some(40),
    "openshift": lambda: "sha256~" + some(43),
    "plaid": lambda: "access-sandbox-" + "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12)),
    "scalingo": lambda: "tk-us-" + some(48),
    "settlemint": lambda: "sm_pat_" + some(16),
    "sonar": lambda: "squ_" + some(40, HEX),
    "twitter bearer": lambda: "A" * 22 + some(90),
    "yandex": lambda: f"t1.{some(20)}.{some(86)}",
    "defined networking": lambda: f"dnkey-{some(26)}-{some(52)}",
    "vault legacy": lambda: "s." + some(24),
    "jwt base64": lambda: "ZXlK" + base64.b64encode(some(120).encode()).decode().rstrip("="),
    "replicate": lambda: "r8_" + some(37),
    "mailgun signing": lambda: f"{some(32, HEX)}-{some(8, HEX)}-{some(8, HEX)}",
    "aws temporary": lambda: "ASIA" + "".join(RANDOM.choice(UPPER) for _ in range(16)),
    "vercel": lambda: "vcp_" + some(56),
    "cloudinary": lambda: f"cloudinary://{some(15, '0123456789')}:{some(27)}@demo",
}
# Services whose tokens have no form of their own: known by the name of the service beside them.
SERVICES = {
    "adafruit": 32, "algolia": 32, "asana": 32, "beamer": 44, "bitbucket": 64, "codecov": 32, "cohere": 40,
    "coinbase": 64, "confluent": 64, "contentful": 43, "datadog": 40, "droneci": 32, "dropbox": 64, "etsy": 24,
    "fastly": 32, "finnhub": 20, "flickr": 32, "freshbooks": 64, "heroku": 36, "intercom": 60, "kraken": 80,
    "launchdarkly": 40, "mattermost": 26, "messagebird": 25, "netlify": 43, "okta": 42, "rapidapi": 50,
    "sendbird": 40, "snyk": 36, "sumologic": 64, "travis": 22, "twitch": 30, "twitter": 45, "zendesk": 40,
    "cloudflare": 40, "meraki": 40, "alibaba": 30, "jfrog": 64, "kucoin": 24, "looker": 24, "nytimes": 32,
}  # fmt: skip
NAMES = (
    "db_password", "API_TOKEN", "client_secret", "apiKey", "passphrase", "AWS_SECRET_ACCESS_KEY", "passwd", "DB_PWD",
    "authToken", "private_key", "signing_key", "ENCRYPTION_KEY", "SMTP_PASS", "credentials", "JWT_SECRET",
    "bearer_token",
    "webhookSecret", "session-secret", "accessKey", "SecretKeyBase", "password_salt", "db.password", "master_key",
    "refresh-token", "DB_CREDS", "userPass", "hmac_key", "authkey", "storage_account_key", "token_prod",
)  # fmt: skip
VALUES = (
    lambda: some(18) + "x",
    lambda: some(12) + "!Q#z&9",
    lambda: encoded(24),
    lambda: some(32, HEX),
    lambda: "Tr0ub4" + some(6) + "$x%",
    lambda: "-".join(RANDOM.choice(("correct", "horse", "staple", "battery")) for _ in range(4)) + "-42",
    lambda: "!" + some(14),
    lambda: some(6) + "_" + some(6) + "." + some(5),
)
# How each type of file gives a value to a name. {n} is the name, {v} the value.
FILES = {
    "py": [
        '{n} = "{v}"',
        '{n}: str = "{v}"',
        "{n} = b'{v}'",
        'connect({n}="{v}")',
        '{n} = (\n    "{v}"\n)',
        '{n} = """{v}"""',
        "{n}: Final[str] = r'{v}'",
        'os.environ["{n}"] = "{v}"',
        'settings = {{"{n}": "{v}"}}',
        'os.environ.setdefault("{n}", "{v}")',
        'os.getenv("{n}", "{v}")',
        "{n}: Optional[str] = '{v}'",
        'if {n} == "{v}":',
        "{n} = \\\n    '{v}'",
        'dict({n} = f"{v}")',
        "self._{n}='{v}'",
        'add("--{n}", default="{v}")',
        '{n} = os.environ.get("X") or "{v}"',
        '{n} = "".join(["{v}"])',
        '{n} = SecretStr("{v}")',
    ],
    "go": [
        'const {n} string = "{v}"',
        '{n} := "{v}"',
        "var {n} = `{v}`",
        'os.Setenv("{n}", "{v}")',
        '{n}: "{v}",',
        'const {n} = "{v}"',
        'var {n} []byte = []byte("{v}")',
        '{n} := []byte("{v}")',
    ],
    "ts": [
        "const {n}: string = '{v}';",
        'x["{n}"] = "{v}"',
        "let {n} = `{v}`",
        "export const {n}='{v}'",
        "process.env.{n} = '{v}';",
        "{{ '{n}': '{v}' }}",
        "{n} = x ?? '{v}'",
        "const {n} = process.env.X || '{v}'",
        "headers.set('{n}', '{v}')",
        "if ({n} === '{v}') {{",
        "private readonly {n} = '{v}'",
        "<Login {n}='{v}' />",
    ],
    "java": [
        'private static final String {n} = "{v}";',
        'config.set_{n}("{v}");',
        'props.put("{n}", "{v}");',
        'props.setProperty("{n}", "{v}");',
        '@Value("{n}") String x = "{v}";',
        '.{n}("{v}")',
        'char[] {n} = "{v}".toCharArray();',
        'System.setProperty("{n}", "{v}");',
        'if ("{v}".equals({n})) {{',
        '@ConfigProperty(name = "{n}", defaultValue = "{v}")',
    ],
    "rs": [
        'let {n}: &str = "{v}";',
        'const {n}: &\'static str = "{v}";',
        'let {n} = String::from("{v}");',
        'env::set_var("{n}", "{v}");',
        'let {n} = "{v}".to_string();',
        'static {n}: &[u8] = b"{v}";',
        '.{n}("{v}")',
    ],
    "cs": [
        'public const string {n} = "{v}";',
        'var {n} = @"{v}";',
        'builder["{n}"] = "{v}";',
        '{n} = "{v}",',
        'string {n} => "{v}";',
    ],
    "c": [
        '#define {n} "{v}"',
        'char {n}[] = "{v}";',
        'char {n}[25] = "{v}";',
        'std::string {n}("{v}");',
        'static const char *{n} = "{v}";',
    ],
    "rb": ["{n} = '{v}'", ":{n} => '{v}'", "{n}: '{v}'", "ENV['{n}'] ||= '{v}'", "config.{n} = '{v}'", "{n} '{v}'"],
    "php": [
        "define('{n}', '{v}');",
        "$config['{n}'] = '{v}';",
        "'{n}' => '{v}',",
        '${n} = "{v}";',
        "putenv('{n}={v}');",
    ],
    "kt": ['val {n} = "{v}"', 'const val {n}: String = "{v}"', 'put("{n}", "{v}")'],
    "swift": ['let {n}: String = "{v}"', 'static let {n} = "{v}"'],
    "ps1": ['$env:{n} = "{v}"', "${n} = '{v}'", 'ConvertTo-SecureString "{v}" -AsPlainText -Force', "-{n} '{v}'"],
    "sh": [
        "export {n}='{v}'",
        '{n}="{v}"',
        "deploy --{n} '{v}'",
        "deploy --{n}={v}",
        "set {n}={v}",
        "{n}={v} ./run.sh",
        'echo "{n}={v}" >> .env',
        "docker run -e {n}={v} app",
        "setx {n} {v}",
        "setenv {n} {v}",
        "fish -c 'set -x {n} {v}'",
        "helm install --set app.{n}={v} x",
        "kubectl create secret generic x --from-literal={n}={v}",
    ],
    "yaml": [
        '{n}: "{v}"',
        "{n}: {v}",
        "{n}: |\n  {v}",
        "x: {{ {n}: '{v}' }}",
        "{n}: &anchor {v}",
        "- name: {n}\n  value: {v}",
        "- name: {n}\n  value: '{v}'",
        "{n}: >-\n    {v}",
        "- {n}: {v}",
        "- {n}={v}",
        "{n}:\n  value: '{v}'",
        "- key: {n}\n  value: {v}",
        "{n}: !!str '{v}'",
        "x: {{name: {n}, value: '{v}'}}",
        "? {n}\n: {v}",
        '"{n}": {v}',
        "{n}: '{v}' # rotate",
        "{n}:\n  - '{v}'",
        "- value: '{v}'\n  name: {n}",
        '{n}: "{v}"  # old',
        "-e {n}={v}",
    ],
    "json": [
        '{{"{n}": "{v}"}}',
        '{{"name": "{n}", "value": "{v}"}}',
        '{{"x": "{{\\"{n}\\": \\"{v}\\"}}"}}',
        '{{"{n}" : "{v}"}}',
        '{{"value": "{v}", "name": "{n}"}}',
        '{{"key": "{n}", "value": "{v}"}}',
        '{{\n  "{n}":\n    "{v}"\n}}',
        '{{"ParameterKey": "{n}", "ParameterValue": "{v}"}}',
        '{{"{n}": ["{v}"]}}',
        '{{"{n}": {{"value": "{v}"}}}}',
    ],
    "env": ["{n}={v}", "export {n}='{v}'", '{n}="{v}"', "{n} = {v}", "# {n}={v}"],
    "ini": ["{n} = {v}", "{n}={v}", "{n}: {v}", "{n}={v} ; old", "[db]\n{n}\t=\t{v}"],
    "properties": ["spring.datasource.{n}={v}", "app.{n} = {v}", "app.{n}: {v}", "app.{n} {v}"],
    "toml": ['{n} = "{v}"', "{n} = '{v}'", 'x = {{ {n} = "{v}" }}', '"{n}" = "{v}"', "{n} = '''{v}'''"],
    "tf": [
        '{n} = "{v}"',
        'variable "{n}" {{\n  type = string\n  default = "{v}"\n}}',
        '"{n}" = "{v}"',
        'set_sensitive {{\n  name  = "{n}"\n  value = "{v}"\n}}',
        'output "{n}" {{\n  value = "{v}"\n}}',
    ],
    "xml": [
        "<{n}>{v}</{n}>",
        '<add {n}="{v}" />',
        '<add key="{n}" value="{v}" />',
        '<property name="{n}" value="{v}"/>',
        '<property name="{n}">{v}</property>',
        '<entry key="{n}">{v}</entry>',
        "<{n}><![CDATA[{v}]]></{n}>",
        '<string name="{n}">{v}</string>',
        "<key>{n}</key>\n\t<string>{v}</string>",
        "<{n} type='x'>{v}</{n}>",
        "<{n}>\n    {v}\n</{n}>",
        '<add value="{v}" key="{n}" />',
    ],
    "Dockerfile": ["ENV {n}={v}", "ENV {n} {v}", 'ENV {n}="{v}"', "ARG {n}={v}", "ENV A=1 {n}={v}", "RUN {n}={v} make"],
    "md": [
        "| {n} | `{v}` |",
        "`{n}={v}`",
        "| {n} | {v} |",
        "- {n}: `{v}`",
        "**{n}**: {v}",
        "The {n} is `{v}`.",
        "{n}: {v}",
        "| app | {n} | {v} |",
        "* {n} = {v}",
    ],
    "html": ['<input name="{n}" value="{v}">', '<meta name="{n}" content="{v}">', "<td>{n}</td><td>{v}</td>"],
    "sql": [
        "CREATE USER app WITH PASSWORD '{v}'",
        "ALTER USER x IDENTIFIED BY '{v}'",
        "SET PASSWORD FOR x = PASSWORD('{v}')",
        "CREATE ROLE r LOGIN PASSWORD '{v}';",
    ],
    "conf": ["requirepass {v}", "{n} {v};", "{n} '{v}';", '{n} "{v}"', "proxy_set_header X-Api-Key {v};"],
    "http": [
        "X-Api-Key: {v}",
        "Authorization: {v}",
        "Cookie: session={v}",
        "X-Auth-Token: {v}",
        "Authorization: token {v}",
    ],
    "log": [
        "login with {n}={v} failed",
        "{n}: {v}",
        'got {{"{n}":"{v}"}}',
        "GET /x?{n}={v}&a=1 200",
        "{n}='{v}', user=x",
    ],
}
PLACES = {
    "url": lambda v: f"postgres://app:{v}@db:5432/app",
    "amqp": lambda v: f"amqps://app:{v}@mq.example.org/vhost",
    "mongo": lambda v: f'uri: "mongodb+srv://app:{v}@cluster0.example.net/db?retryWrites=true"',
    "redis": lambda v: f"REDIS_URL=redis://:{v}@cache:6379/0",
    "git url": lambda v: f"git clone https://x-access-token:{v}@git.example.org/a/b.git",
    "user as token": lambda v: f"git clone https://{v}@git.example.org/a/b.git",
    "ado": lambda v: f'"Server=db;User Id=sa;Password={v};Encrypt=true"',
    "ado pwd": lambda v: f"Driver={{x}};Server=db;Uid=sa;Pwd={v};",
    "libpq": lambda v: f'dsn = "host=db user=app password={v} dbname=x"',
    "go mysql": lambda v: f'sql.Open("mysql", "app:{v}@tcp(db:3306)/x")',
    "jdbc": lambda v: f'"jdbc:mysql://db/app?user=a&password={v}"',
    "jdbc oracle": lambda v: f"jdbc:oracle:thin:app/{v}@db:1521:x",
    "jdbc sqlserver": lambda v: f"jdbc:sqlserver://db:1433;databaseName=x;user=sa;password={v};",
    "sqlalchemy": lambda v: f'create_engine("mysql+pymysql://app:{v}@db/x")',
    "azure storage": lambda v: (
        f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={v}{v}==;EndpointSuffix=core.windows.net"
    ),
    "service bus": lambda v: f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey={v}{v}=",
    "sas": lambda v: f"https://x.blob.core.windows.net/a?sv=2020&sp=r&sig={v}{v}%3D",
    "aws presigned": lambda v: f"https://x.s3.amazonaws.com/a?X-Amz-Date=1&X-Amz-Signature={v}{v}{v}",
    "netrc": lambda v: f"machine example.org login ada password {v}",
    "netrc lines": lambda v: f"machine example.org\n  login ada\n  password {v}",
    "pgpass": lambda v: f"db.example.org:5432:app:ada:{v}",
    "npmrc": lambda v: f"//registry.example.org/:_authToken={v}",
    "npmrc auth": lambda v: f"_auth={v}{v}",
    "npmrc password": lambda v: f"//registry.example.org/:_password={v}",
    "pypirc": lambda v: f"[pypi]\nusername = __token__\npassword = {v}",
    "git credentials": lambda v: f"https://ada:{v}@git.example.org",
    "htpasswd": lambda v: f"ada:$apr1${v[:8]}${v}",
    "crypt hash": lambda v: f"root:$6${v[:8]}${v}{v}{v}:18000:0:99999:7:::",
    "bcrypt": lambda v: f"hash = '$2b$12${(v * 5)[:53]}'",
    "curl": lambda v: f"curl -s -u ada:{v} https://example.org",
    "curl user": lambda v: f"curl --user 'ada:{v}' https://example.org",
    "wget": lambda v: f"wget --http-password={v} https://example.org",
    "mysql": lambda v: f"mysql -h db -u root -p{v} app",
    "mysqldump": lambda v: f"mysqldump -uroot -p'{v}' app",
    "sshpass": lambda v: f"sshpass -p {v} ssh ada@host",
    "docker login": lambda v: f"docker login -u ada -p {v} r.example.org",
    "redis-cli": lambda v: f"redis-cli -h x -a {v} ping",
    "PGPASSWORD": lambda v: f"PGPASSWORD={v} psql -h db",
    "openssl": lambda v: f"openssl enc -aes-256-cbc -pass pass:{v} -in x",
    "ldap": lambda v: f"ldapsearch -D cn=admin -w {v} -b dc=x",
    "smb": lambda v: f"smbclient //srv/x -U ada%{v}",
    "header": lambda v: f"curl -H 'PRIVATE-TOKEN: {v}' https://example.org",
    "header api key": lambda v: f'curl -H "X-API-Key: {v}" https://example.org',
    "header auth": lambda v: f'headers = {{"Authorization": "{v}"}}',
    "header apikey": lambda v: f"Authorization: ApiKey {v}",
    "flag": lambda v: f"deploy --password={v}",
    "flag space": lambda v: f"deploy --token {v} --verbose",
    "bearer": lambda v: f"Authorization: Bearer {v}",
    "bearer quoted": lambda v: f'"Authorization": "Bearer {v}"',
    "basic": lambda v: f"Authorization: Basic {base64.b64encode(('ada:' + v).encode()).decode()}",
    "tuple auth": lambda v: f'requests.get(url, auth=("ada", "{v}"))',
    "sql string": lambda v: f"INSERT INTO users (name, password) VALUES ('ada', '{v}')",
    "slack prose": lambda v: f"the password is {v}, don't share it",
    "prose": lambda v: f"Log in with user ada and password: {v}",
    "secret yaml": lambda v: f"kind: Secret\nmetadata:\n  name: x\ndata:\n  plain: {v}\n",
    "secret above": lambda v: f"data:\n  plain: {v}\nkind: Secret\n",
    "secret string": lambda v: f"apiVersion: v1\nkind: Secret\nstringData:\n  config.yaml: |-\n    a: {v}\n    b: 1\n",
    "secret list": lambda v: f"kind: List\nitems:\n  - kind: Secret\n    data:\n      plain: {v}\n",
    "secret list flush": lambda v: f"kind: List\nitems:\n- apiVersion: v1\n  data:\n    plain: {v}\n  kind: Secret\n",
    "secret flow": lambda v: f"kind: Secret\ndata: {{plain: {v}}}\n",
    "secret json": lambda v: f'{{"kind": "Secret", "data": {{"plain": "{v}"}}}}',
    "secret json lines": lambda v: (
        f'{{\n  "kind": "Secret",\n  "data": {{\n    "a": "{v}",\n    "b": "x1x2x3x4"\n  }}\n}}'
    ),
    "secret folded": lambda v: f"kind: Secret\ndata:\n  plain: >\n    {v}\n",
    "secret annotation": lambda v: (
        "kind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: |\n"
        f'      {{"apiVersion":"v1","data":{{"plain":"{v}"}},"kind":"Secret"}}\n'
    ),
    "secret annotation escaped": lambda v: (
        '{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '
        f'"{{\\"data\\":{{\\"plain\\":\\"{v}\\"}},\\"kind\\":\\"Secret\\"}}"}}}}}}'
    ),
    "kubeconfig": lambda v: f"users:\n- name: x\n  user:\n    client-key-data: {v}{v}{v}==",
    "ansible": lambda v: f"ansible_ssh_pass={v} ansible_user=x",
    "ansible become": lambda v: f"ansible_become_password: {v}",
    "wifi": lambda v: f'psk="{v}"',
    "maven": lambda v: f"<server><id>x</id><username>a</username><password>{v}</password></server>",
    "nuget": lambda v: f'<add key="ClearTextPassword" value="{v}" />',
    "web.config": lambda v: f'<add name="x" connectionString="Server=db;User Id=sa;Password={v}" />',
    "gradle": lambda v: f'credentials {{ username "ada"; password "{v}" }}',
    "composer": lambda v: f'{{"http-basic": {{"r.example.org": {{"username": "a", "password": "{v}"}}}}}}',
    "wireguard": lambda v: f"PrivateKey = {v}{v}=",
    "rsync": lambda v: f"RSYNC_PASSWORD={v} rsync -a x y",
    "webhook": lambda v: f"webhook_url: https://chat.example.org/hooks/{v}{v}",
    "sentry dsn": lambda v: f"SENTRY_DSN=https://{(v.encode().hex() * 2)[:32]}@o1.ingest.sentry.io/1",
    "escaped quote": lambda v: f'password = "{v[:6]}\\"{v[6:]}"',
    "connection string": lambda v: f'connectionString = "Endpoint=x;AccessKey={v};"',
    "s3cfg": lambda v: f"[default]\naccess_key = x\nsecret_key = {v}",
    "boto": lambda v: f'boto3.client("s3", aws_access_key_id="x", aws_secret_access_key="{v}")',
    "sidekiq": lambda v: f"BUNDLE_ENTERPRISE__CONTRIBSYS__COM={v.encode().hex()[:8]}:{v.encode().hex()[-8:]}",
    "jenkins": lambda v: f"<passwordHash>#jbcrypt:{v}</passwordHash>",
    "csv": lambda v: f"user,password,role\nada,{v},admin",
    "firebase": lambda v: f"firebase deploy --token {v}",
    "twine": lambda v: f"twine upload -u __token__ -p {v} dist/*",
    "vault kv": lambda v: f"vault kv put secret/app password={v}",
    "az login": lambda v: f"az login --service-principal -u x -p {v} --tenant y",
    "heroku config": lambda v: f"heroku config:set API_TOKEN={v}",
    "gh secret": lambda v: f"gh secret set DEPLOY_TOKEN --body {v}",
    "gpg": lambda v: f"gpg --batch --passphrase '{v}' -d x",
    "java keystore": lambda v: f"keytool -storepass {v} -keypass x",
    "zip": lambda v: f"zip -P {v} x.zip y",
    "chpasswd": lambda v: f'echo "ada:{v}" | chpasswd',
    "stdin login": lambda v: f"echo {v} | docker login -u ada --password-stdin",
}
# What follows from the value in another way: the part that must not stay.
DERIVED = {
    "htpasswd": lambda v: v,
    "crypt hash": lambda v: v,
    "bcrypt": lambda v: (v * 5)[:53],
    "sentry dsn": lambda v: (v.encode().hex() * 2)[:32],
    "basic": lambda v: base64.b64encode(("ada:" + v).encode()).decode()[8:],
    "escaped quote": lambda v: v[6:],
    "sidekiq": lambda v: v.encode().hex()[-8:],
}


def planted() -> list[tuple[str, str, str]]:
    """Kind, text and secret."""
    rows = []
    for number, (kind, make) in enumerate(TOKENS.items()):
        for step in range(4):
            shapes = FILES[sorted(FILES)[(number * 4 + step) % len(FILES)]]
            value = make()
            rows.append((kind, "a = 1\n" + shapes[step % len(shapes)].format(n="value", v=value) + "\nb = 2\n", value))
    for service, length in SERVICES.items():
        for shape in ('{}_KEY = "{}"', "{}: {}", "{}_API={}", 'const {}Auth = "{}"'):
            value = some(length, string.ascii_lowercase + string.digits)
            rows.append((f"of {service}", shape.format(service, value) + "\n", value))
    turn = 0
    for file, shapes in FILES.items():
        for shape in shapes:
            for step in range(6):
                turn += 1
                value = VALUES[turn % len(VALUES)]()
                name = NAMES[(turn * 7 + step) % len(NAMES)]
                rows.append((f"named in {file}", "a = 1\n" + shape.format(n=name, v=value) + "\nb = 2\n", value))
    for kind, place in PLACES.items():
        for length in (12, 18, 24):
            value = some(length)
            rows.append((kind, place(value) + "\n", DERIVED.get(kind, str)(value)))
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
