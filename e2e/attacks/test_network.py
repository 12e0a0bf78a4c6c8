"""A pod opens connections to the operator, the node program and a neighbour's sidecar."""

import time

import pytest

from harness import jobs, views
from harness.installation import SYSTEM
from harness.nodes import node_program
from harness.strangers import (ATTACH, CONTROL_PORT, DEBUG_PORT, METRICS_PORT, NODE_PORT, NODE_REPORT, PROBES_PORT,
                               REFUSED, Flood, call, hello, http, leader, leader_report, message, operators, plain_pod,
                               restarts, token, unsigned)

pytestmark = pytest.mark.own_cluster

HALF_OPEN = 10_000


def test_a_stolen_token_is_valid_for_its_own_pod_only(namespace, neighbour, neighbour_ns, foreign, intruder):
    # threat model, row 11: a sidecar's token is valid for its own pod only
    stolen, mine = token(neighbour_ns, pod=neighbour.pod), token(namespace, pod=intruder)
    job = neighbour_ns.job(neighbour.name)["metadata"]

    def ask(who, words):
        lie = leader_report(foreign, resident_bytes=1 << 50, total_bytes=1 << 50, samples=1, granted_bytes=1 << 50)
        return call(namespace.kube, ATTACH, who, words, lie, via=(namespace, intruder))
    before = neighbour_ns.dataset_status()
    got = {}
    for title, who, words in (
            ("my token, the victim's hello", mine, hello(neighbour_ns, neighbour.pod, neighbour.name, job["uid"], {"train": foreign})),
            ("my token, my pod in its namespace", mine, hello(neighbour_ns, intruder, neighbour.name, job["uid"], {"train": foreign})),
            ("my token, its pod in my namespace", mine, hello(namespace, neighbour.pod, neighbour.name, job["uid"],
                                                             {"train": foreign})),
            ("stolen token, my hello", stolen, hello(namespace, intruder, "x", "y", {"train": foreign})),
            ("stolen token, another node", stolen, hello(neighbour_ns, neighbour.pod, neighbour.name, job["uid"], {"train": foreign},
                                                         node="node-2" if neighbour_ns.home == "node-1" else "node-1")),
            ("stolen token, another pod of its namespace", stolen, hello(neighbour_ns, "another", neighbour.name, job["uid"],
                                                                        {"train": foreign}))):
        answer = ask(who, words)
        print(f"{title}: {answer.status} {answer.words[-120:]!r}")
        if answer.status not in REFUSED or answer.body:
            got[title] = (answer.status, answer.body)
    # The same hello as the pod's, sent from elsewhere: a stolen token gives the pod's own grant and nothing more.
    replayed = ask(stolen, hello(neighbour_ns, neighbour.pod, neighbour.name, job["uid"], {"train": foreign, "x": "another-uid"}, node=neighbour_ns.home))
    print("replayed whole:", replayed.status, replayed.body, replayed.words[-120:])
    time.sleep(8)  # if the operator believed the report, the status would show it by then
    after = neighbour_ns.dataset_status()
    print("before", before, "after", after, sep="\n")
    neighbour.goes_on()
    assert not got
    assert b"another-uid" not in replayed.body
    assert (after["totalBytes"], after["samples"]) == (before["totalBytes"], before["samples"])


def test_a_fake_sidecar_gets_nothing_of_another_dataset(namespace, neighbour, neighbour_ns, foreign, intruder):
    # threat model, rows 10, 11: whatever the hello claims, the operator neither grants nor believes anything about the
    # uid of a foreign dataset
    namespace.apply(jobs.dataset(), jobs.training_job("mine", ["--epochs", 1], suspend=True))
    own = namespace.job("mine")["metadata"]["uid"]
    theirs = neighbour_ns.job(neighbour.name)["metadata"]["uid"]
    labelled = plain_pod("labelled", namespace.home)
    labelled["metadata"]["labels"] = neighbour_ns.get("pod", neighbour.pod)["metadata"]["labels"]
    namespace.apply(labelled)
    views.running(namespace, "labelled")
    before = neighbour_ns.dataset_status()
    heard = {}
    for pod in (intruder, "labelled"):
        mine = token(namespace, pod=pod)
        for job, uid in (("mine", own), (neighbour.name, theirs), ("mine", theirs), ("", ""), ("../mine", "x" * 100_000)):
            for sequence, rank, more in ((1, 0, {}), (2**63, 0, {}), (1, 2**31 - 1, {}), (1, 0, {"../x": "../../x", "": ""})):
                lie = leader_report(foreign, sequence, resident_bytes=1 << 50, resident_samples=1 << 40,
                                    total_bytes=1 << 50, samples=1)
                words = hello(namespace, pod, job, uid, {"train": foreign, **more}, node=namespace.home, rank=rank)
                answer = call(namespace.kube, ATTACH, mine, words, lie, lie, via=(namespace, pod))
                print(pod, job, sequence, answer.status, answer.body, answer.words[-100:].replace("\r\n", " "))
                if foreign.encode() in answer.body:
                    heard[f"{pod} {job}"] = answer.body
    time.sleep(10)  # if the operator believed the report, the status would show it by then
    after = neighbour_ns.dataset_status()
    neighbour.goes_on()
    assert not heard, "grants of the neighbour's dataset"
    assert [after[key] for key in ("totalBytes", "samples", "jobs")] == [before[key] for key in ("totalBytes", "samples", "jobs")]
    assert after.get("cachedBytes", 0) < 1 << 40


def test_tokens_of_other_audiences_and_forged_ones_are_refused(namespace, neighbour, neighbour_ns, foreign, intruder):
    # threat model, row 11: the operator checks a token's audience, pod and signature; row 12: it refuses long headers
    kube = namespace.kube
    system = jobs.Namespace(kube, SYSTEM)
    node_pod, _ = node_program(kube, namespace.home)
    good = token(namespace, pod=intruder)
    words = hello(namespace, intruder, "x", "y", {"train": foreign}, node=namespace.home)
    report = message({1: namespace.home, 2: "boot", 3: "0.2.0"})
    elsewhere = message({1: next(name for name in kube.nodes() if name != namespace.home), 2: "boot"})
    tokens = {
        "none": None, "empty": "", "garbage": "x.y.z", "of the API server": token(namespace, audience=None, pod=intruder),
        "of a like audience": token(namespace, audience="stoker.dev.evil", pod=intruder), "of no pod": token(namespace),
        "unsigned": unsigned(good), "unsigned of the node program": unsigned(good, sub=f"system:serviceaccount:{SYSTEM}:stoker-node"),
        "cut": good[:-4], "long": "a" * 60_000, "twice": f"{good} {good}", "of the explaining account": token(system, account="stoker-explain"),
    }
    calls = [(f"{title} {method}", who, method, body) for title, who in tokens.items()
             for method, body in ((ATTACH, words), (NODE_REPORT, report))]
    calls += [("a tenant's good token for nodes", good, NODE_REPORT, report),
              ("the node program's account without its pod", token(system, account="stoker-node"), NODE_REPORT, report),
              ("another node's node program", token(system, account="stoker-node", pod=node_pod), NODE_REPORT, elsewhere),
              ("the node program as a sidecar", token(system, account="stoker-node", pod=node_pod), ATTACH, words)]
    got = {}
    for title, who, method, body in calls:
        answer = call(kube, method, who, body, via=(namespace, intruder))
        print(title, answer.status, answer.words[-100:].replace("\r\n", " "))
        if answer.body or answer.status not in (*REFUSED, *((None,) if "long" in title else ())):
            got[title] = (answer.status, answer.body)
    neighbour.goes_on()
    assert not got


def test_ten_thousand_half_open_connections_do_not_block_the_operator(namespace, neighbour, intruder):
    # threat model, row 12: half-open connections are limited in number and time, and delay no other client
    kube = namespace.kube
    before = restarts(kube)
    floods = [Flood(namespace, intruder, f"{leader(kube)}:{CONTROL_PORT}", HALF_OPEN)]
    begun = time.monotonic()
    neighbour.goes_on()  # the neighbour's second job gets its grant through the same port while they are open
    took = time.monotonic() - begun
    told = [flood.end() for flood in floods]
    print(told, f"two jobs in {took:.0f} s")
    assert sum(item["held"] + item["failed"] for item in told) > 0
    assert all(item["closed"] >= 0.9 * item["held"] for item in told), "half-open connections are cut off"
    assert restarts(kube) == before


@pytest.mark.parametrize("say", ["", "GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n"], ids=["silent", "half-a-request"])
def test_half_open_requests_at_every_http_port_fail_no_probe(namespace, neighbour, neighbour_ns, intruder, say):
    # threat model, rows 9, 10, 12: held connections do not fail any probe of the operator, the node program or a
    # sidecar
    kube = namespace.kube
    where = [f"{address}:{port}" for address in operators(kube) for port in (METRICS_PORT, PROBES_PORT, DEBUG_PORT)]
    where.append(f"{node_program(kube, namespace.home)[1]}:{NODE_PORT}")
    where.append(f"{neighbour_ns.get('pod', neighbour.pod)['status']['podIP']}:{jobs.SIDECAR_PORT}")
    floods = {place: Flood(namespace, intruder, place, 3000, say=say) for place in where}
    time.sleep(80)  # longer than any liveness probe needs to fail
    answers = {}
    for place in where:
        begun = time.monotonic()
        path = "metrics" if place.endswith(str(METRICS_PORT)) else "healthz"
        code, _ = http(namespace, intruder, f"{'https' if place.endswith(str(DEBUG_PORT)) else 'http'}://{place}/{path}")
        answers[place] = (code, round(time.monotonic() - begun, 1))
    ready = {pod["metadata"]["name"]: [state["ready"] for state in pod["status"]["containerStatuses"]]
             for pod in kube.list("pods", SYSTEM)}
    sidecar = neighbour_ns.get("pod", neighbour.pod)["status"]["initContainerStatuses"][0]
    told = {place: flood.end() for place, flood in floods.items()}
    print(*[f"{place}: {told[place]}, asked meanwhile: {answers[place]}" for place in where], ready, restarts(kube), sep="\n")
    neighbour.goes_on(shaken=True)
    assert all(all(states) for states in ready.values()), ready
    assert restarts(kube) == neighbour.before
    assert (sidecar["ready"], sidecar["restartCount"]) == (True, 0)
    assert all(code for code, _ in answers.values()), answers


def test_strangers_read_nothing_at_the_operators_other_ports(namespace, neighbour, neighbour_ns, intruder):
    # threat model, row 10: /debug/* answers only callers with the right to see all namespaces
    mine = token(namespace, audience=None)
    leak = {}
    for address in operators(namespace.kube):
        for path in ("/debug/allocation", "//debug/allocation", "/debug/../debug/allocation", "/debug/%61llocation",
                     "/debug/allocation?x", "/debug/allocation/", "/debug", "/", "/metrics", "/DEBUG/allocation",
                     "/healthz/../debug/allocation"):
            for port, scheme in ((DEBUG_PORT, "https"), (METRICS_PORT, "http"), (PROBES_PORT, "http")):
                for words in ((), ("-H", f"Authorization: Bearer {mine}"), ("-H", "Authorization: Basic YTpi"),
                              ("-H", "X-Remote-User: system:admin", "-H", "X-Remote-Group: system:masters")):
                    code, body = http(namespace, intruder, f"{scheme}://{address}:{port}{path}", "--path-as-is", *words)
                    if neighbour_ns.name in body and not (port == METRICS_PORT and path == "/metrics"):
                        leak[f"{port}{path} {words}"] = (code, body[:200])
    assert not leak, leak
    neighbour.goes_on()


def test_strangers_read_nothing_at_a_neighbours_sidecar(namespace, neighbour, neighbour_ns, intruder, foreign):
    # threat model, row 10: no other namespace learns which data a namespace's jobs have, or where
    address = neighbour_ns.get("pod", neighbour.pod)["status"]["podIP"]
    leak = {}
    for path in ("/status", "/metrics", "/readyz", "/healthz", "/"):
        code, body = http(namespace, intruder, f"http://{address}:{jobs.SIDECAR_PORT}{path}")
        print(path, code, body[:1500])
        if foreign in body or "train" in body or "mnist" in body or neighbour.name in body:
            leak[path] = body[:400]
    assert not leak, leak
    neighbour.goes_on()
