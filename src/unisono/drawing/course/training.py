"""Lesson 7: what collectives are for. Four ways to train on several ranks, each recorded on four real ranks."""

from __future__ import annotations

from unisono.collectives import Words
from unisono.drawing.course.kinds import script_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.recorded import (
    ACTIVATIONS,
    GATHERED,
    GRADIENTS,
    OPTIMIZER,
    PARAMETERS,
    Recording,
    size_text,
)
from unisono.drawing.course.trace import joined

STATES = (PARAMETERS, GRADIENTS, OPTIMIZER)


def _data_parallel() -> Drawn:
    step = Recording.of("data_parallel")
    bucket = step.calls("all_reduce")[0]
    call = step.call(bucket)
    held = size_text(step.held(0, PARAMETERS))
    layers_en, layers_zh = joined(call["layers"], "and"), joined(call["layers"], "和")
    captions = [
        Caption(0, Words(
            f"{step.ranks} ranks have the same model, {held} of parameters each, and different data. This is the "
            f"simplest way to train faster: DDP.",
            f"{step.ranks} 个 rank 的模型相同，参数各 {held}，数据不同。这是加快训练最简单的办法：DDP。",
        )),
        Caption(step.at("loss"), Words(
            f"The forward pass needs no communication. Each rank now keeps "
            f"{size_text(step.held(step.at('loss'), ACTIVATIONS))} of activations for the backward pass.",
            f"前向传播不需要通信。此时每个 rank 保留着 {size_text(step.held(step.at('loss'), ACTIVATIONS))} 激活值，"
            f"供反向传播使用。",
        )),
        Caption(step.start(bucket), Words(
            f"The gradients of layers {layers_en} are ready, {size_text(call['bytes'])}. Their all-reduce starts "
            f"while the ranks still compute the earlier layers: communication hides behind computation.",
            f"第 {layers_zh} 层的梯度已经算好，共 {size_text(call['bytes'])}。它们的 all-reduce 立即开始，同时各 "
            f"rank 继续计算更靠前各层的梯度，通信与计算因此重叠。",
        )),
        Caption(step.at("ready"), Words(
            "All ranks have the same averaged gradients, to the last bit. So they take the same step and stay "
            "identical.",
            "所有 rank 的平均梯度逐位一致，因此更新也相同，各 rank 的模型保持一致。",
        )),
        Caption(step.last, Words(
            f"Each rank has sent {size_text(step.sent())}: about 2(p−1)/p times its gradients, the factor of lesson "
            f"4.",
            f"每个 rank 一共发送 {size_text(step.sent())}：大约是梯度的 2(p−1)/p 倍，正是第 4 课的系数。",
        )),
    ]  # fmt: skip
    question = Question(
        Words("Why does DDP not need to send parameters during training?", "训练过程中，DDP 为什么不需要发送参数？"),
        (
            Words("Because parameters are larger than gradients.", "因为参数比梯度大。"),
            Words(
                "Because equal models and equal gradients give equal models.",
                "因为模型相同、梯度也相同，更新后仍然相同。",
            ),
            Words("Because each rank trains a different part of the model.", "因为每个 rank 训练模型的不同部分。"),
        ),
        1,
        Words(
            f"All ranks start with the same model, and the all-reduce gives them the same gradients, bit for bit: "
            f"Unisono proves this agreement for every algorithm. If the bits could differ, the models would drift "
            f"apart. DDP saves no memory: every rank holds {size_text(step.held(step.at('ready'), *STATES))} of "
            f"parameters, gradients and Adam state.",
            f"起点相同，all-reduce 又让各 rank 的梯度逐位一致：对每个算法，Unisono 都证明了这种一致性。"
            f"如果各 rank 的结果有差别，模型就会逐渐偏离。DDP 并不节省内存：每个 rank 的参数、梯度和 Adam 状态共占 "
            f"{size_text(step.held(step.at('ready'), *STATES))}。",
        ),
    )
    return script_page("data-parallel", step.last, captions, question)


def _tensor_parallel() -> Drawn:
    step = Recording.of("tensor_parallel")
    forward, backward = step.calls("all_reduce", "forward")[0], step.calls("all_reduce", "backward")[0]
    column, _, row = step.data["layers"]
    block = [each["phase"] for each in step.data["block"]]
    captions = [
        Caption(0, Words(
            f"Now the matrices themselves are split: each of {step.ranks} ranks has 1/{step.ranks} of the columns of "
            f"A and 1/{step.ranks} of the rows of B. All ranks get the same input X.",
            f"这次切分矩阵本身：{step.ranks} 个 rank 各有 A 的 1/{step.ranks} 的列和 B 的 1/{step.ranks} 的行。所有 "
            f"rank 的输入 X 相同。",
        )),
        Caption(1, Words(
            "X times some columns of A gives some columns of the product, and they are complete. The activation "
            "function works on single numbers, so nothing is sent.",
            "X 乘以 A 的若干列，得到乘积的若干列，而且已是最终结果。激活函数逐个数计算，所以不发送任何数据。",
        )),
        Caption(step.start(forward), Words(
            f"After B, each rank has one of {step.ranks} addends of Y: one all-reduce of "
            f"{size_text(step.call(forward)['bytes'])}. Every rank waits for it, since the next layer needs Y.",
            f"乘完 B，每个 rank 手里是 Y 的 {step.ranks} 个加数之一：做一次 all-reduce，"
            f"{size_text(step.call(forward)['bytes'])}。所有 rank 都要等它，因为下一层需要 Y。",
        )),
        Caption(step.start(backward), Words(
            "The backward pass is the mirror image: its only all-reduce sums the gradient of X.",
            "反向传播正好对称：唯一的 all-reduce 对 X 的梯度求和。",
        )),
        Caption(step.last, Words(
            f"Each rank held {size_text(step.held(step.at('ready'), *STATES))}. A whole transformer layer needs "
            f"{block.count('forward')} all-reduces forward and {block.count('backward')} backward, and computation "
            f"waits for each.",
            f"每个 rank 占用 {size_text(step.held(step.at('ready'), *STATES))}。一个完整的 Transformer 层前向需要 "
            f"{block.count('forward')} 次 all-reduce，反向 {block.count('backward')} 次，每一次都要等它完成，"
            f"才能继续计算。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "Your machines have eight GPUs with NVLink; between machines there is a slower network. How many ranks "
            "should tensor parallelism span?",
            "每台机器有八块 GPU，以 NVLink 相连；机器之间的网络较慢。张量并行应该跨多少个 rank？",
        ),
        (
            Words("As many as possible: memory shrinks with each rank.", "越多越好：rank 越多，占用的内存越少。"),
            Words("At most those of one machine.", "最多用一台机器之内的 rank。"),
            Words("It does not matter: only few bytes are sent.", "无所谓：发送的字节很少。"),
        ),
        1,
        Words(
            "At most one machine. Computation has to wait for its all-reduces, unlike those of DDP, so they need the "
            "fastest links. Between machines, use data parallelism or ZeRO. `unisono plan --model llama-8b "
            "--gpus 64 --network dgx-h100` compares all combinations.",
            "最多一台机器。与 DDP 不同，计算必须等待它的 all-reduce，所以需要最快的链路。机器之间用数据并行或 ZeRO。"
            "`unisono plan --model llama-8b --gpus 64 --network dgx-h100` 比较所有的组合。",
        ),
    )
    assert (column["split"], row["split"]) == ("column", "row")
    return script_page("tensor-parallel", step.last, captions, question)


def _zero3() -> Drawn:
    step, ddp = Recording.of("zero3"), Recording.of("data_parallel")
    gather, again = step.calls("all_gather", "forward")[0], step.calls("all_gather", "backward")[0]
    scatter = step.calls("reduce_scatter")[0]
    whole, part = ddp.held(ddp.at("ready"), *STATES), step.held(step.at("ready"), *STATES)
    layer = step.call(gather)["bytes"]
    most = max(step.held(at, GATHERED) for at in range(step.last + 1))
    halves = (len(step.calls("all_gather")) + len(step.calls("reduce_scatter"))) // len(step.data["layers"])
    captions = [
        Caption(0, Words(
            f"In DDP, every rank stored the same data. Here nothing is stored twice: each rank has "
            f"1/{step.ranks} of every layer, {size_text(step.held(0, PARAMETERS, OPTIMIZER))} with its Adam state. "
            f"The bar also counts memory that is allocated but empty (hatched).",
            f"在 DDP 中，每个 rank 存的都一样。这里没有任何内容重复保存：每个 rank 只有每一层的 1/{step.ranks}，连同 "
            f"Adam 状态共 {size_text(step.held(0, PARAMETERS, OPTIMIZER))}。长条还包括已分配而未用的内存（斜线）。",
        )),
        Caption(step.start(gather), Words(
            f"A layer is gathered just before it is needed: an all-gather of "
            f"{size_text(step.call(gather)['bytes'])}, ahead of time. After use it is freed.",
            f"一层的参数在用到之前才收集完整：一次 all-gather，{size_text(step.call(gather)['bytes'])}，提前开始。"
            f"用完就释放。",
        )),
        Caption(step.start(again), Words(
            f"The backward pass needs each layer again, so it is gathered again. A rank never holds more than "
            f"{most // layer} gathered layers ({size_text(most)}).",
            f"反向传播还要用到每一层，于是再收集一次。任何时候，一个 rank 收集来的参数都不超过 {most // layer} 层（"
            f"{size_text(most)}）。",
        )),
        Caption(step.start(scatter), Words(
            "Gradients are averaged by reduce-scatter, the first half of the ring: each rank gets only the part that "
            "it updates.",
            "梯度用 reduce-scatter 求平均，也就是环的前一半：每个 rank 只得到自己要更新的那一份。",
        )),
        Caption(step.last, Words(
            f"Before the update each rank held {size_text(part)} of parameters, gradients and Adam state; with DDP "
            f"it was {size_text(whole)}. It sent {size_text(step.sent())} instead of {size_text(ddp.sent())}.",
            f"更新之前，每个 rank 的参数、梯度和 Adam 状态共 {size_text(part)}；DDP 是 {size_text(whole)}。它发送了 "
            f"{size_text(step.sent())}，而 DDP 是 {size_text(ddp.sent())}。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "ZeRO-3 sends more than DDP. How much more, and where does it come from?",
            "ZeRO-3 发送的比 DDP 多。多多少？多在哪里？",
        ),
        (
            Words(
                f"{step.ranks} times as much: everything is gathered from {step.ranks} ranks.",
                f"{step.ranks} 倍：每样东西都要从 {step.ranks} 个 rank 收集。",
            ),
            Words("Half as much again: the second all-gather.", "多一半：多在第二次 all-gather。"),
            Words("Twice as much: parameters as well as gradients.", "两倍：参数和梯度都要发送。"),
        ),
        1,
        Words(
            f"{step.sent() / ddp.sent():.2f} times. An all-reduce is a reduce-scatter plus an all-gather (lesson "
            f"3); ZeRO-3 needs a reduce-scatter and two all-gathers: {halves} halves instead of 2. In return, "
            f"parameters, gradients and Adam state fall to 1/{whole / part:g} just before the update. Gathered "
            f"layers and empty memory included, a rank allocates at most {size_text(step.peak)}; with DDP it is "
            f"{size_text(ddp.peak)}.",
            f"{step.sent() / ddp.sent():.2f} 倍。all-reduce 由 2 个半程组成：reduce-scatter 和 all-gather（第 3 "
            f"课）；ZeRO-3 需要 {halves} 个：一次 reduce-scatter 和两次 all-gather。换来的是：更新之前，参数、"
            f"梯度和优化器状态降到 1/{whole / part:g}。连同收集来的各层和尚未使用的内存，一个 rank 最多分配 "
            f"{size_text(step.peak)}，而 DDP 最多分配 {size_text(ddp.peak)}。",
        ),
    )
    return script_page("zero3", step.last, captions, question)


def _experts() -> Drawn:
    step = Recording.of("experts")
    dispatch, combine = step.calls("all_to_all", "forward")
    counts = step.calls("all_gather")[0]
    rows = step.call(dispatch)["rows"]
    loads = [sum(each[rank] for each in rows) for rank in range(step.ranks)]
    busiest = loads.index(max(loads))
    each = sum(rows[0])
    captions = [
        Caption(0, Words(
            f"{step.ranks} ranks, {step.ranks} experts: each rank has one, and a copy of the router. A model can "
            f"have many experts and yet compute only a few for each token.",
            f"{step.ranks} 个 rank，{step.ranks} 个专家：每个 rank 有一个专家和一份路由器。模型可以有很多专家，"
            f"而每个 token 只用其中几个计算。",
        )),
        Caption(step.start(counts), Words(
            "The routers have chosen two experts for each row. First the ranks tell each other how many rows to "
            "expect: a tiny all-gather.",
            "路由器为每一行选好了两个专家。各 rank 先互相通知会有多少行：一次很小的 all-gather。",
        )),
        Caption(step.start(dispatch), Words(
            f"Dispatch: an all-to-all sends every row to its experts. Rank 0 has {each} rows to send; "
            f"{joined(rows[0], 'and')} of them go to the experts of ranks {joined(range(step.ranks), 'and')}.",
            f"分发：all-to-all 把每一行送到它的专家。rank 0 要送 {each} 行，其中 {joined(rows[0], '和')} 行分别送给 "
            f"rank {joined(range(step.ranks), '和')} 的专家。",
        )),
        Caption(step.start(combine), Words(
            f"The experts have computed {joined(loads, 'and')} rows. Combine: the same all-to-all backwards "
            f"returns every result to its row.",
            f"各专家分别算了 {joined(loads, '和')} 行。合并：方向相反的 all-to-all，每个结果回到原来的行。",
        )),
        Caption(step.start(step.calls("all_reduce")[0]), Words(
            "Only the router is on every rank, so only its gradient is averaged. The gradient of an expert never "
            "leaves its rank.",
            "只有路由器在每个 rank 上都有，所以只对它的梯度求平均。专家的梯度从不离开自己的 rank。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "Which rank do the others wait for, and what could be done about it?",
            "其他 rank 要等哪个 rank？有什么办法？",
        ),
        tuple(Words(f"Rank {rank}", f"rank {rank}") for rank in range(step.ranks)),
        busiest,
        Words(
            f"Rank {busiest}: its expert has {max(loads)} rows, the mean is {sum(loads) / len(loads):g}. Hence "
            f"load-balancing losses and capacity limits, above which an expert drops rows. The number of rows "
            f"differs in every step, so the all-to-all must accept any sizes.",
            f"rank {busiest}：它的专家有 {max(loads)} 行，平均是 {sum(loads) / len(loads):g} 行。"
            f"因此训练路由器时要加一项鼓励均衡的损失，或者让专家拒绝超出容量的行。每一步的行数都不同，所以 "
            f"all-to-all 必须能接受任意大小。",
        ),
    )
    return script_page("experts", step.last, captions, question)


LESSON = Lesson(
    "training",
    Words("Training on many ranks", "多 rank 训练"),
    Words(
        "A training step in four variants, each recorded on four real ranks.",
        "训练步的四种做法，都在四个真实的 rank 上记录。"),
    (
        Page("data-parallel", Words("DDP", "DDP"),
             Words(
                 "Every rank has the whole model and different data; gradients are averaged during the backward "
                 "pass.",
                   "每个 rank 都有完整的模型，但数据不同；在反向传播过程中就对梯度求平均。"), _data_parallel),
        Page("tensor-parallel", Words("Tensor parallel", "张量并行"),
             Words("Every matrix is split: the first by columns, the second by rows.",
                   "每个矩阵都要切分：第一个按列切，第二个按行切。"), _tensor_parallel),
        Page("zero3", Words("ZeRO-3", "ZeRO-3"),
             Words("A layer is gathered when it is needed, and freed afterwards.",
                   "一层的参数用到时才收集完整，用完就释放。"), _zero3),
        Page("experts", Words("Mixture of experts", "混合专家"),
             Words("Each row (a token) travels to the experts that the router chose for it; the results travel back.",
                   "每一行（一个 token）送往路由器为它选中的专家，结果再送回原处。"), _experts),
    ),
)  # fmt: skip
