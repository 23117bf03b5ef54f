"""Lesson 8: algorithms race on a simulated network."""

from __future__ import annotations

from collections.abc import Sequence

from unisono import networks
from unisono.algorithms import find
from unisono.algorithms.host_options import network_options
from unisono.collectives import Words
from unisono.drawing.course.kinds import RACE, REPLAY, network_page, race_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.trace import Trace
from unisono.drawing.scene import on_hosts, scene_of
from unisono.drawing.simulated import Conditions, drawn_alone, race
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator import simulate

RACERS = ("ring", "recursive_doubling", "rabenseifner", "tree")
RANKS = 8
NETWORK = "dgx-h100"
OTHERS = ("ethernet-10g", "ideal")
CHINESE = {"ring": "环", "recursive_doubling": "递归倍增", "rabenseifner": "Rabenseifner", "tree": "树"}
TINY, SHORT, LONG = 8, 4096, 1 << 27  # bytes
HOSTS_RANKS, HOSTS_BYTES = 16, 1 << 26


def _race() -> Drawn:
    traces = [Trace.of(name, RANKS) for name in RACERS]
    found = race(
        [trace.schedule for trace in traces], [trace.scene for trace in traces],
        [networks.load(name) for name in (NETWORK, *OTHERS)],
    )  # fmt: skip
    found["bytes"] = SHORT  # the page opens with the first caption
    here = found["networks"][0]
    times = {nbytes: [finish[found["sizes"].index(nbytes)] for finish in here["finish"]] for nbytes in (SHORT, LONG)}
    first, last, at = {}, {}, {}
    for nbytes, seconds in times.items():
        order = sorted(range(len(RACERS)), key=seconds.__getitem__)
        first[nbytes], last[nbytes] = order[0], order[-1]
        at[nbytes] = RACE * seconds[order[0]] / seconds[order[-1]]
    fast, slow, big, lame = map(_name, (first[SHORT], last[SHORT], first[LONG], last[LONG]))
    fast_zh, slow_zh, big_zh, lame_zh = map(_chinese, (first[SHORT], last[SHORT], first[LONG], last[LONG]))
    ring, winner = traces[RACERS.index("ring")], traces[first[LONG]]
    assert winner.proof.busiest == ring.proof.busiest
    call_s, step_s = parts_of_time([trace.levels for trace in traces], times[SHORT])
    tiny = [finish[found["sizes"].index(TINY)] for finish in here["finish"]]
    crossing = here["crossovers"]
    changes_en = ", ".join(f"{_name(each['after'])} from {_bytes(each['bytes'])} on" for each in crossing)
    changes_zh = "，".join(f"从 {_bytes(each['bytes'])} 起是 {_chinese(each['after'])}" for each in crossing)
    view = [{"network": NETWORK, "bytes": nbytes} for nbytes in (SHORT, LONG)]
    captions = [
        Caption(0, Words(
            f"Four algorithms, one result, {RANKS} GPUs of a DGX H100, joined by NVLink. The times come from the "
            f"simulator. The vector is short: {_bytes(SHORT)}. Which one wins? Decide before you press play.",
            f"四种算法（环 ring、递归倍增 recursive doubling、树 tree 与 Rabenseifner），结果相同，在一台 DGX H100 "
            f"的 {RANKS} 块 GPU 上，以 NVLink 相连。时间由模拟器给出。向量很短：{_bytes(SHORT)}。谁会赢？先猜一猜，"
            f"再点播放。",
        ), view[0]),
        Caption(at[SHORT], Words(
            f"{fast.capitalize()} is done after {_us(times[SHORT][first[SHORT]])}: it has the fewest steps, "
            f"{traces[first[SHORT]].levels}. A call has a fixed cost of {_us(call_s, 2)}; at this size each step "
            f"adds {_us(step_s, 2)}, almost regardless of the bytes that it carries.",
            f"{fast_zh}完成，用时 {_us(times[SHORT][first[SHORT]])}：它的步数最少，只有 "
            f"{traces[first[SHORT]].levels} 步。每次调用有 {_us(call_s, 2)} 的固定开销；在这个大小上，每一步再加 "
            f"{_us(step_s, 2)}，几乎与所带的字节数无关。",
        ), view[0]),
        Caption(RACE, Words(
            f"{slow.capitalize()} is last with {_us(times[SHORT][last[SHORT]])}: its {traces[last[SHORT]].levels} "
            f"steps must follow one another.",
            f"{slow_zh}最后，用时 {_us(times[SHORT][last[SHORT]])}：它的 {traces[last[SHORT]].levels} "
            f"步只能一步接一步地走。",
        ), view[0]),
        Caption(0, Words(
            f"The same race with a long vector, {_bytes(LONG)}: now bytes decide.",
            f"同一场比赛，换成长向量 {_bytes(LONG)}：这时由字节数决定。",
        ), view[1]),
        Caption(at[LONG], Words(
            f"{big.capitalize()} wins with {_us(times[LONG][first[LONG]])}. Each rank sends only "
            f"{winner.proof.busiest} of the vector, as in the ring, but in {winner.levels} steps instead of "
            f"{ring.levels}; with {lame}, one rank sends {traces[last[LONG]].proof.busiest} vectors.",
            f"{big_zh} 胜出，用时 {_us(times[LONG][first[LONG]])}。每个 rank 只发送向量的 {winner.proof.busiest}，"
            f"与环相同，但只要 {winner.levels} 步，而环要 {ring.levels} 步；{lame_zh}中有的 rank 要发送 "
            f"{traces[last[LONG]].proof.busiest} 个向量。",
        ), view[1]),
        Caption(RACE, Words(
            f"Circles in the chart below mark where the fastest algorithm changes: {changes_en}. On another network "
            f"the result can differ.",
            f"图中的圆圈标出最快的算法在哪里换人：{changes_zh}。换一个网络，结果可能又不同。",
        ), view[1]),
    ]  # fmt: skip
    question = Question(
        Words(
            f"A training step needs an all-reduce of {_bytes(LONG)} of gradients, and one of {_bytes(TINY)} over all "
            f"ranks. Is one algorithm best for both?",
            f"一个训练步既要对 {_bytes(LONG)} 的梯度求和，又要对 {_bytes(TINY)} 的一个数求和。两者用同一种算法吗？",
        ),
        (
            Words(f"Yes: {big} for both.", f"是：都用 {big_zh}。"),
            Words(
                f"No: {big} for the gradients, {fast} for {_bytes(TINY)}.",
                f"不：梯度用 {big_zh}，{_bytes(TINY)} 用{fast_zh}。",
            ),
            Words(f"Yes: {fast}, it has the fewest steps.", f"是：用{fast_zh}，它步数最少。"),
        ),
        1,
        Words(
            f"No. On this network {big} is {times[LONG][first[SHORT]] / times[LONG][first[LONG]]:.1f} times as fast "
            f"as {fast} at {_bytes(LONG)}, and {fast} {tiny[first[LONG]] / tiny[first[SHORT]]:.1f} times as fast as "
            f"{big} at {_bytes(TINY)}. Libraries choose by size; `unisono explain` gives the reason for a choice.",
            f"不。在这个网络上，{_bytes(LONG)} 时 {big_zh} 的速度是{fast_zh}的 "
            f"{times[LONG][first[SHORT]] / times[LONG][first[LONG]]:.1f} 倍，{_bytes(TINY)} 时{fast_zh}是 {big_zh} "
            f"的 {tiny[first[LONG]] / tiny[first[SHORT]]:.1f} 倍。通信库按大小选择算法；`unisono explain` "
            f"给出选择的理由。",
        ),
    )
    return race_page([trace.scene for trace in traces], found, captions, question)


def _links() -> Drawn:
    network = networks.load(NETWORK)
    algorithm, ring = find("hierarchical"), find("ring")
    schedule = algorithm.schedule(HOSTS_RANKS, **network_options(algorithm, network, HOSTS_RANKS))
    found = drawn_alone(schedule, network, Conditions(network, (HOSTS_BYTES,)))
    time_s, ring_s = found["prediction"]["time_s"], simulate(ring.schedule(HOSTS_RANKS), HOSTS_BYTES, network).time_s
    per_host = network.ranks_per_host
    near = sum(1 for link in found["links"] if not link["far"])
    far = len(found["links"]) - near
    away, back = _crossing(schedule, network)
    captions = [
        Caption(0, Words(
            f"Two DGX H100, {per_host} GPUs each: {HOSTS_RANKS} ranks sum {_bytes(HOSTS_BYTES)} with a hierarchy. "
            f"Each line is a path between two GPUs; the redder it is, the more of its bandwidth is in use.",
            f"两台 DGX H100，各 {per_host} 块 GPU：{HOSTS_RANKS} 个 rank 用分层算法对 {_bytes(HOSTS_BYTES)} 求和。"
            f"图中每条线是两块 GPU 之间的一条通路，颜色越红，带宽占用越高。",
        )),
        Caption(REPLAY * away / time_s, Words(
            f"After {_us(away)} the reduce-scatter inside the hosts is over, and only the far links are busy: each "
            f"GPU exchanges with its partner through a NIC. The links inside the hosts pause.",
            f"{_us(away)} 之后，主机内部的 reduce-scatter 结束，只有主机之间的链路在忙：每块 GPU "
            f"经网卡与自己的伙伴交换。主机内部的链路暂时空闲。",
        )),
        Caption(REPLAY * back / time_s, Words(
            f"{_us(back - away)} later the sums have crossed. The rest is an all-gather inside the hosts. Lesson 6, "
            f"in microseconds.",
            f"又过了 {_us(back - away)}，各主机的和已经交换完毕。剩下的是主机内部的 all-gather。"
            f"这就是第 6 课，只是以微秒计。",
        )),
        Caption(REPLAY, Words(
            f"Done after {_us(time_s)}, over {near} links inside hosts and {far} between them; every line is two, "
            f"one for each direction. A single ring over all {HOSTS_RANKS} GPUs takes {_us(ring_s)}.",
            f"用时 {_us(time_s)}，用到主机内部的 {near} 条链路和主机之间的 {far} 条；图中一条线算两条，"
            f"每个方向一条。{HOSTS_RANKS} 块 GPU 排成一个环则需 {_us(ring_s)}。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "How do you know whether an algorithm is fast on a cluster that you cannot use yet?",
            "还用不上某个集群时，怎样知道一个算法在它上面快不快？",
        ),
        (
            Words("You cannot, before it has run there.", "没法知道，只能等它在那里跑过。"),
            Words("Count the steps; fewer are faster.", "数步数，越少越快。"),
            Words("Describe its network and simulate.", "描述它的网络，然后模拟。"),
        ),
        2,
        Words(
            f"Describe the network in ten lines (docs/networks.md) and run `unisono simulate ring hierarchical -n "
            f"{HOSTS_RANKS} --network {NETWORK}`. Steps alone decide only for short vectors. docs/predictions.md "
            f"compares the simulator with published measurements, and says where it is wrong.",
            f"用十行描述这个网络（docs/networks.md），再运行 `unisono simulate ring hierarchical -n {HOSTS_RANKS} "
            f"--network {NETWORK}`。只有向量很短时才单看步数。docs/predictions.md 把模拟器与公开的实测数据比较，"
            f"并说明哪里不准。",
        ),
    )
    scene = on_hosts(scene_of(schedule, algorithm), network.host_ranks(HOSTS_RANKS))
    return network_page(scene, found, captions, question)


def _crossing(schedule: Schedule, network: Network) -> tuple[float, float]:
    """Return when the first message leaves its host, and when the last one is done, in seconds."""
    timeline = simulate(schedule, HOSTS_BYTES, network, timeline=True).timeline
    assert timeline is not None
    per_host = network.ranks_per_host
    far = timeline.source // per_host != timeline.target // per_host
    return float(timeline.leave_s[:, far].min()), float(timeline.done_s[:, far].max())


def _name(at: int) -> str:
    return RACERS[at].replace("_", " ")


def _chinese(at: int) -> str:
    """Return the name that the earlier lessons teach."""
    return CHINESE[RACERS[at]]


def parts_of_time(levels: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the cost of a call and of each step, from the calls with the fewest and the most steps."""
    few, many = min(range(len(levels)), key=levels.__getitem__), max(range(len(levels)), key=levels.__getitem__)
    step_s = (seconds[many] - seconds[few]) / (levels[many] - levels[few])
    return seconds[few] - levels[few] * step_s, step_s


def _us(seconds: float, digits: int = 3) -> str:
    """Return a time with some digits, in microseconds or milliseconds."""
    return f"{seconds * 1e6:.{digits}g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.{digits}g} ms"


def _bytes(nbytes: float) -> str:
    """Return a size as the page writes it: 4 KiB."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes:.3g} B"


LESSON = Lesson(
    "race",
    Words("A race on a simulated network", "模拟网络上的赛跑"),
    Words("The same result by four algorithms: the best one depends on size and network.",
          "四种算法，同样的结果：谁最快，取决于向量的大小和网络。"),
    (
        Page("race", Words("The race", "赛跑"),
             Words("Four all-reduce algorithms race on a short and on a long vector.",
                   "四种 all-reduce 算法分别在短向量和长向量上赛跑。"), _race),
        Page("links", Words("Inside the network", "网络内部"),
             Words("Two hosts, sixteen GPUs: see which links are busy, and when.",
                   "两台主机，十六块 GPU：看哪些链路在忙，什么时候忙。"), _links),
    ),
)  # fmt: skip
