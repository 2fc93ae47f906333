"""The service graph: every true edge of the sample and no false one; and why an edge is there, or is not."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
import sample_truth as truth
from dowse.ingest.manifests.env import filled
from dowse.ingest.services.addresses import Address, addresses, bare_addresses, short
from dowse.ingest.services.facts import _facts, with_facts
from dowse.ingest.services.graph import names_of, service_graph
from dowse.ingest.services.places import service_places
from dowse.query.stages.services import ServiceGraph
from dowse.types import ServiceFact
from factories import PLAIN, of_chunks
from values import replace

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"


def graph_of(folder: Path, files: dict[str, str], index: Path) -> ServiceGraph:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    with dowse.open(index, embedder="none") as engine:
        engine.index([folder], embed=False)
        return engine.services()


def triples(graph: ServiceGraph) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.target, edge.type) for edge in graph.edges}


# --- the sample ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> ServiceGraph:
    with dowse.open(tmp_path_factory.mktemp("services") / "index", embedder="none") as engine:
        engine.index([SAMPLE], embed=False)
        return engine.services()


def test_the_sample_has_every_true_edge_and_no_false_one(company: ServiceGraph) -> None:
    found, true = triples(company), set(truth.SERVICE_EDGES)
    precision, recall = len(found & true) / len(found), len(found & true) / len(true)
    print(f"service edges: precision {precision:.3f}, recall {recall:.3f} ({len(found)} found, {len(true)} true)")
    assert found == true


def test_the_sample_has_every_service_and_no_other(company: ServiceGraph) -> None:
    external = {service.name for service in company.services if service.external}
    assert external == set(truth.EXTERNALS)
    assert {service.name for service in company.services} - external == {*truth.SERVICES, *truth.STORES}


def test_every_edge_of_the_sample_cites_manifests_and_the_code_that_reads_the_setting(company: ServiceGraph) -> None:
    by_ends = {(edge.source, edge.target): edge for edge in company.edges}
    for service, variable, target in truth.EDGE_SETTINGS:
        edge = by_ends[service, target]
        assert len(edge.evidence) >= 2
        assert variable in edge.description


@pytest.mark.parametrize("without", ["deploy", "docker-compose.yml"])
def test_half_of_the_manifests_of_the_sample_show_no_false_edge(
    without: str, tmp_path: Path, index_folder: Path
) -> None:
    """Compose and Kubernetes say the same; with either alone the ends and the direction stay right."""
    folder = tmp_path / "acme"
    for path in SAMPLE.rglob("*"):
        name = path.relative_to(SAMPLE)
        if path.is_file() and name.parts[0] != without:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(path.read_bytes())
    ends = {(source, target) for source, target, _ in triples(graph_of(folder, {}, index_folder))}
    assert ends <= {(source, target) for source, target, _ in truth.SERVICE_EDGES}
    assert len(ends) == len(truth.SERVICE_EDGES)


# --- what shows an edge -------------------------------------------------------------------------------

COMPOSE = """\
    services:
      web:
        build: ./web
        environment: {SETTING}
      auth-service:
        image: auth:1
      store:
        image: postgres:17
    """


@pytest.mark.parametrize(
    ("setting", "edges"),
    [
        ("{AUTH_URL: http://auth-service:80/x}", {("web", "auth-service", "http")}),
        ("{AUTH_URL: http://auth-svc.prod.svc.cluster.local}", {("web", "auth-service", "http")}),
        ("{AUTH_ADDR: auth_svc:50051}", set()),  # an underscore is no host
        ("{AUTH_ADDR: auth-svc:50051}", {("web", "auth-service", "unknown")}),  # a port proves nothing
        ("{DB_HOST: store}", {("web", "store", "db")}),
        ("{STORE_URL: http://store:5432}", {("web", "store", "db")}),  # what it is counts more than how it is written
        ("{MODE: store}", set()),  # no address
        ("{TITLE: 'auth-service: the best'}", set()),
        ("{AUTH_URL: http://auth}", {("web", "auth", "http")}),  # not a part of a name; so it is another system
        ("{AUTH_URL: 'http://${AUTH_HOST}:80'}", set()),
        ("{AUTH_URL: 'http://localhost:80'}", set()),
        ("{WEB_URL: http://web:80}", set()),  # itself
        ("{BROKERS: 'kafka-0.kafka:9092,kafka-1.kafka:9092'}", {("web", "kafka-0.kafka", "queue"),
                                                                 ("web", "kafka-1.kafka", "queue")}),
    ],
)  # fmt: skip
def test_a_setting_shows_an_edge(setting: str, edges: set[object], tmp_path: Path, index_folder: Path) -> None:
    text = COMPOSE.replace("{SETTING}", setting)
    assert triples(graph_of(tmp_path / "src", {"compose.yaml": text}, index_folder)) == edges


def test_code_shows_calls_by_clients_and_stubs_and_nothing_else(tmp_path: Path, index_folder: Path) -> None:
    files = {
        "web/Dockerfile": "FROM node\n",
        "web/api.ts": """\
            // the handbook is at "https://handbook.example/web"
            export const LOGO = "https://cdn.example/logo.png";
            export async function pay() {
              return fetch("https://pay.example/v1/charges");
            }
            export const stub = new proto.shop.v1.StockService(address, credentials.createInsecure());
            """,
        "web/test/api.test.ts": 'fetch("https://never.example/");\n',
        "stock/Dockerfile": "FROM golang\n",
        "stock/main.go": "func main() {\n\tstockv1.RegisterStockServiceServer(server, impl)\n}\n",
        "README.md": "See http://stock:80 and https://elsewhere.example\n",
    }
    found = graph_of(tmp_path / "src", files, index_folder)
    assert triples(found) == {("web", "pay.example", "http"), ("web", "stock", "grpc")}


CODE_PARTS = (
    'get("https://tax.local/x")', "TAX_URL", "DB_HOSTS", "tax_pb2.TaxStub(channel)", "RegisterTaxServer(s, x)",
    "NewTaxClient(conn)", "add_TaxServicer_to_server(a, b)", "# _UR", "s.addService(tax.TaxService, {})", "x = 1",
)  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(CODE_PARTS), min_size=1, max_size=3).map("\n".join), min_size=1, max_size=4))
def test_every_chunk_is_asked_for_what_it_holds_whatever_the_others_do(texts: list[str]) -> None:
    """All chunks of a file are looked through at once, and most hold nothing."""
    code = replace(PLAIN, corpus_type="CODE_LOGIC", language="python")
    document = of_chunks("pay/main.py", [replace(code, text=text) for text in dict.fromkeys(texts)])
    wanted = [name for chunk in document.chunks for name, _ in {(each.name, each.kind) for each in _facts(chunk)}]
    assert sorted(fact.name for fact in with_facts(document).facts) == sorted(wanted)


def test_a_config_map_counts_for_whoever_takes_it(tmp_path: Path, index_folder: Path) -> None:
    text = """\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: common}
        data: {CACHE_URL: redis://cache:6379}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          template:
            spec:
              containers:
                - envFrom: [{configMapRef: {name: common}}]
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: idle}
        ---
        apiVersion: networking.k8s.io/v1
        kind: Ingress
        metadata: {name: public}
        spec: {rules: [{host: shop.example, http: {paths: [{backend: {service: {name: web}}}]}}]}
        """
    found = graph_of(tmp_path / "src", {"k8s/all.yaml": text}, index_folder)
    assert triples(found) == {("web", "cache", "db")}
    assert [(each.name, each.external) for each in found.services] == [("cache", True), ("idle", False), ("web", False)]


# --- values from environment files ----------------------------------------------------------------------

SHOP = """\
services:
  web:
    build: ./web
    env_file: [web.env]
    environment:
      - CART_ADDR
      - MAIL_URL=http://${MAIL_HOST:-mail}:${MAIL_PORT}
      - LOG_DSN=Host=${LOG_HOST};Username=x
      - OUTSIDE_URL
      - MISSING_ADDR
    depends_on:
      ads:
        condition: service_started
      migrate:
        condition: service_completed_successfully
  cart: {image: "cart:1"}
  mail: {image: "mail:1"}
  ads: {image: "ads:1"}
  stock: {image: "stock:1"}
  logs: {image: "postgres:17"}
  migrate: {image: "migrate:1"}
"""
DOT_ENV = """\
# addresses
CART_PORT=7070
CART_ADDR="cart:${CART_PORT}"  # of the cart
export MAIL_PORT=8025
LOG_HOST=logs
OUTSIDE_URL=https://hidden-partner.example/token-4711
"""


def test_compose_takes_values_from_environment_files_and_cites_the_lines(tmp_path: Path, index_folder: Path) -> None:
    files = {"compose.yaml": SHOP, ".env": DOT_ENV, "web.env": "STOCK_ADDR=stock:9000\n"}
    graph = graph_of(tmp_path / "src", files, index_folder)
    reasons = {edge.target: edge.description.partition(": ")[2] for edge in graph.edges}
    line = {text: number for number, text in enumerate(map(str.strip, SHOP.splitlines()), 1)}
    assert reasons == {
        "cart": f"CART_ADDR is set by an environment file (compose.yaml:{line['- CART_ADDR']})",
        "mail": f"MAIL_URL is set by an environment file (compose.yaml:{line['- CART_ADDR'] + 1})",
        "logs": f"LOG_DSN is set by an environment file (compose.yaml:{line['- CART_ADDR'] + 2})",
        "stock": f"STOCK_ADDR is set by an environment file (compose.yaml:{line['env_file: [web.env]']})",
        "ads": f"depends on ads (compose.yaml:{line['ads:']})",
    }


def test_values_of_environment_files_are_never_stored(tmp_path: Path, index_folder: Path) -> None:
    graph = graph_of(tmp_path / "src", {"compose.yaml": SHOP, ".env": DOT_ENV}, index_folder)
    assert not any(service.external for service in graph.services)
    stored = b"".join(path.read_bytes() for path in index_folder.rglob("*") if path.is_file())
    assert b"CART_ADDR" in stored
    assert not [value for value in (b"hidden-partner", b"token-4711", b"7070", b"8025") if value in stored]


def test_a_changed_environment_file_changes_the_graph(tmp_path: Path, index_folder: Path) -> None:
    folder = tmp_path / "src"
    assert ("web", "cart") in ends(graph_of(folder, {"compose.yaml": SHOP, ".env": DOT_ENV}, index_folder))
    changed = graph_of(folder, {".env": DOT_ENV.replace('"cart:', '"stock:')}, index_folder)
    assert {("web", "stock")} <= ends(changed)
    assert ("web", "cart") not in ends(changed)


def ends(graph: ServiceGraph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges}


@pytest.mark.parametrize(
    ("text", "value", "used"),
    [
        ("$A-${A}", "1-1", True),
        ("${A:-x}", "1", True),
        ("${EMPTY:-x}", "x", False),
        ("${EMPTY-x}", "", True),
        ("${NO:-x}", "x", False),
        ("${NO:-${A}}", "1", True),
        ("${NO:+x}${A:+y}", "y", False),
        ("${NO} $$A ${A", "${NO} $A ${A", False),
    ],
)
def test_variables_are_filled_in_as_compose_does(text: str, value: str, used: bool) -> None:
    assert filled(text, {"A": "1", "EMPTY": ""}) == (value, used)


@given(st.text(alphabet="${}:-+?A B", max_size=40))
def test_any_value_can_be_filled_in(text: str) -> None:
    assert len(filled(text, {"A": "1"})[0]) <= len(text)


# --- kustomize, Helm and several repositories -------------------------------------------------------------


def test_patches_of_a_kustomization_show_edges_on_their_lines(tmp_path: Path, index_folder: Path) -> None:
    kustomization = """\
        resources: [base.yaml]
        patches:
        - patch: |-
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web}
            spec:
              template:
                spec:
                  containers:
                  - name: server
                    env:
                    - name: TRACE_ADDR
                      value: collector:4317
        - target: {kind: Deployment, name: web}
          patch: |-
            - op: add
              path: /spec/template/spec/containers/0/env/-
              value:
                name: CART_ADDR
                value: cart:7070
        - target: {kind: Deployment, name: web}
          path: changes.json
        configMapGenerator:
        - name: settings
          literals: [MAIL_ADDR=mail:25]
        """
    base = "".join(
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n---\n"
        for name in ("collector", "cart", "mail", "ads")
    )
    workload = """\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          template:
            spec:
              containers:
              - name: server
                envFrom: [{configMapRef: {name: settings}}]
        """
    changes = '[{"op": "add", "path": "/x", "value": {"name": "ADS_ADDR", "value": "ads:80"}}]'
    files = {"o/kustomization.yaml": kustomization, "o/changes.json": changes, "o/base.yaml": base + dedent(workload)}
    graph = graph_of(tmp_path / "src", files, index_folder)
    found = {edge.target: edge.description.rpartition("(")[2] for edge in graph.edges}
    places = {"collector": 13, "cart": 20, "ads": 22, "mail": 26}
    assert found == {name: f"o/kustomization.yaml:{line})" for name, line in places.items()}
    assert {service.name for service in graph.services} == {"web", "collector", "cart", "mail", "ads"}


def test_a_helm_template_with_its_values_is_the_service_it_renders_to(tmp_path: Path, index_folder: Path) -> None:
    template = """\
        {{- if .Values.web.create }}
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: {{ .Values.web.name }}
          labels:
            {{- include "shop.labels" . | nindent 4 }}
        spec:
          template:
            spec:
              containers:
              - name: server
                image: {{ .Values.images.repository }}/web:{{ .Values.images.tag | default .Chart.AppVersion }}
                env:
                - name: CART_ADDR
                  value: "{{ .Values.cart.name }}:7070"
                - name: MAIL_ADDR
                  value: "{{ include "shop.mail" . }}:25"
        {{- end }}
        """
    service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.cart.name | quote }}\n"
    files = {
        "shop/Chart.yaml": "apiVersion: v2\nname: shop-chart\nversion: 1.0.0\n",
        "shop/values.yaml": "web: {create: true, name: front}\ncart:\n  name: basket\n",
        "shop/templates/web.yaml": template,
        "shop/templates/cart.yaml": service,
    }
    graph = graph_of(tmp_path / "src", files, index_folder)
    assert [(edge.source, edge.target, edge.description.rpartition("(")[2]) for edge in graph.edges] == [
        ("front", "basket", "shop/templates/web.yaml:15)")
    ]
    assert {service.name for service in graph.services} == {"front", "basket"}  # and not the chart


def test_services_of_one_name_in_two_repositories_stay_two(tmp_path: Path, index_folder: Path) -> None:
    def text(target: str) -> str:
        return (
            f"services:\n  web:\n    image: web:1\n    environment: {{A_URL: 'http://{target}'}}\n"
            f"  {target}:\n    image: x:1\n"
        )

    graph_of(tmp_path / "one", {"compose.yaml": text("cart")}, index_folder)
    graph = graph_of(tmp_path / "two", {"compose.yaml": text("mail")}, index_folder)
    assert ends(graph) == {("one/web", "cart"), ("two/web", "mail")}
    caller = "services:\n  bot:\n    image: b:1\n    environment: {W_URL: 'http://web', M_URL: 'http://mail'}\n"
    graph = graph_of(tmp_path / "three", {"compose.yaml": caller}, index_folder)
    assert ends(graph) == {("one/web", "cart"), ("two/web", "mail"), ("bot", "mail")}  # `web` may be either
    assert {each.name for each in graph.services} == {"one/web", "two/web", "cart", "mail", "bot"}


def test_the_graph_follows_changes_and_removals(tmp_path: Path, index_folder: Path) -> None:
    folder = tmp_path / "src"
    first = COMPOSE.replace("{SETTING}", "{AUTH_URL: http://auth-service}")
    assert triples(graph_of(folder, {"compose.yaml": first, "notes.md": "hello"}, index_folder))
    second = COMPOSE.replace("{SETTING}", "{MODE: quiet}")
    assert not graph_of(folder, {"compose.yaml": second}, index_folder).edges
    with dowse.open(index_folder, embedder="none") as engine:
        engine.remove([str(folder / "compose.yaml")])
        assert engine.services().services == ()


def test_files_belong_to_the_nearest_service(tmp_path: Path, index_folder: Path) -> None:
    files = {
        "compose.yaml": "services:\n  shop-front:\n    build: ./web\n",
        "web/Dockerfile": "FROM node\n",
        "web/src/deep/a.ts": "export const a = 1;\n",
        "lib/package.json": '{"name": "lib"}\n',
        "lib/b.ts": "export const b = 1;\n",
        "c.ts": "export const c = 1;\n",
    }
    graph_of(tmp_path / "src", files, index_folder)
    with dowse.open(index_folder, embedder="none") as engine:
        names = {path: engine.show(str(tmp_path / "src" / path))[0].service_name for path in files}
    assert names == {
        "compose.yaml": "shop-front", "web/Dockerfile": "shop-front", "web/src/deep/a.ts": "shop-front",
        "lib/package.json": "lib", "lib/b.ts": "lib", "c.ts": None,
    }  # fmt: skip


MANIFEST = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  ports: [{{port: 80}}]\n"


def test_code_beside_the_manifests_of_its_service_belongs_to_it(tmp_path: Path, index_folder: Path) -> None:
    order = "kind: Deployment\nmetadata:\n  name: order-service\nspec:\n  template:\n    spec:\n      containers:\n" + (
        "      - name: app\n        env: [{name: AUTH_URL, value: 'http://auth-service:80'}]\n"
    )
    files = {
        "auth-service/user.go": "package auth\n\nfunc GetUser(id string) string { return id }\n",
        "auth-service/deploy/service.yaml": MANIFEST.format(name="auth-service"),
        "order-service/order.go": "package order\n\nfunc CreateOrder() string { return GetUser() }\n",
        "order-service/k8s/base/deployment.yaml": order,
        "order-service/k8s/base/service.yaml": MANIFEST.format(name="order-service"),
        "infra/deploy/other.yaml": MANIFEST.format(name="elsewhere"),
        "infra/tool.go": "package infra\n\nfunc Tool() {}\n",
    }
    graph_of(tmp_path / "src", files, index_folder)
    with dowse.open(index_folder, embedder="none") as engine:
        found = engine.query("GetUser", service_filter=["auth-service"], corpus_filter=["CODE_LOGIC"])
        assert [hit.file_path for hit in found.chunks] == ["auth-service/user.go"]
        context = engine.query("CreateOrder", corpus_filter=["CODE_LOGIC"], expand_graph=True).service_context
        assert context
        assert [(name, each.calls) for name, each in dict(context).items() if name == "order-service"] == [
            ("order-service", ("auth-service",))
        ]
        assert engine.show(str(tmp_path / "src" / "infra" / "tool.go"))[0].service_name is None


def test_the_folder_of_a_dockerfile_that_compose_names_belongs_to_its_service(
    tmp_path: Path, index_folder: Path
) -> None:
    files = {
        "compose.yaml": "".join(
            f"{'services:' if name == 'cart' else ''}\n  {name}:\n    build: {{context: ./, dockerfile: '{file}'}}\n"
            for name, file in (("cart", "${CART_FILE}"), ("mail", "src/mail/Dockerfile"))
        ),
        ".env": "CART_FILE=./src/cart/src/Dockerfile\n",
        "src/cart/src/main.py": "a = 1\n",
        "src/mail/main.py": "b = 1\n",
    }
    graph_of(tmp_path / "src", files, index_folder)
    with dowse.open(index_folder, embedder="none") as engine:
        names = [engine.show(str(tmp_path / "src" / path))[0].service_name for path in list(files)[2:]]
    assert names == ["cart", "mail"]


# --- names and addresses ------------------------------------------------------------------------------

NAMES = names_of(
    {name: name for name in ("auth-service", "user-billing", "booking-api", "kafka")} | {"login": "auth-service"},
    ["prod"],
)


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("auth-service", "auth-service"),
        ("AUTH-SERVICE", "auth-service"),
        ("auth-svc", "auth-service"),
        ("svc-auth", "auth-service"),
        ("auth_srv", "auth-service"),
        ("auth-service.prod", "auth-service"),
        ("auth-service.other", None),
        ("auth-service.prod.svc.cluster.local", "auth-service"),
        ("kafka-0.kafka.prod.svc.cluster.local", "kafka"),
        ("login", "auth-service"),
        ("auth", None),
        ("service", None),
        ("user", None),
        ("billing", None),
        ("booking-api-internal", None),
        ("api.booking.example", None),
    ],
)
def test_a_host_means_a_service_by_its_whole_name_or_not_at_all(host: str, service: str | None) -> None:
    assert NAMES.resolve(host) == service


def test_a_name_that_two_services_fit_means_neither() -> None:
    names = names_of({"auth-service": "auth-service", "service-auth": "service-auth"}, [])
    assert names.resolve("auth-svc") is None
    assert names.resolve("auth-service") == "auth-service"


def test_addresses_are_found_with_their_type() -> None:
    assert addresses("jdbc:postgresql://a:5432/x") == (Address("a", 5432, "db"),)
    assert addresses("amqp://u:[masked]@b.c:5672,d:5672") == (
        Address("b.c", 5672, "queue"),
        Address("d", 5672, "queue"),
    )
    assert addresses("${URL:-https://e.example/v1}") == (Address("e.example", None, "http"),)
    assert addresses("see ftp://f and http://127.0.0.1:80") == ()
    assert bare_addresses("g:6379, h:6380") == (Address("g", 6379, ""), Address("h", 6380, ""))
    assert bare_addresses("12:30") == bare_addresses("a b:80") == ()
    assert short("i.ns.svc.cluster.local") == short("i.ns.svc") == "i"
    assert short("i.example") == "i.example"


@given(st.text(max_size=80))
def test_any_text_has_addresses_or_none(text: str) -> None:
    for address in (*addresses(text), *bare_addresses(text)):
        assert address.host == address.host.lower()


def test_the_order_of_facts_does_not_matter() -> None:
    facts = [
        ServiceFact("declares", "a", "Compose", chunk_id="1"),
        ServiceFact("declares", "b", "Compose", type="db", chunk_id="2"),
        ServiceFact("sets", "a", "B_URL", "b:1", "http", chunk_id="3", place="x:1"),
        ServiceFact("reads", "a", "B_URL", chunk_id="4", place="y:1"),
    ]
    graphs = {service_graph(order) for order in permutations(facts)}
    assert len(graphs) == 1
    ((_, edges),) = graphs
    assert [(edge.source, edge.target, edge.type, edge.evidence) for edge in edges] == [("a", "b", "db", ("3", "4"))]


def test_places_are_found_without_a_disk() -> None:
    places = service_places([("r", "a/Dockerfile"), ("r", "b/docker/Dockerfile"), ("r", "Makefile")], {})
    assert places.of("r", "a/x/y.py") == "a"
    assert places.of("r", "b/docker/z") is None
    assert places.of("other", "a/x.py") is None
