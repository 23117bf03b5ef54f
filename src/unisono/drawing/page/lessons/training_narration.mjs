// Sentences about a moment of a training step.

import { exactBytes } from "../common/units.mjs";
import { EXPERTS_NARRATION } from "./experts_words.mjs";

/** The sentences for a moment, the most important one first. */
export function momentSentences(data, level, language) {
  const moment = data.moments[level];
  const say = SAY[language];
  const words = data.strategy === "experts" ? EXPERTS_NARRATION[language] : say[data.strategy];
  const said = [];
  if (moment.what === "compute") {
    const name = data.layers[moment.layer].split || data.layers[moment.layer].kind;
    const told = words[moment.phase];
    said.push(typeof told === "function" ? told(moment.layer) : told[name](data.ranks));
  } else if (moment.what === "collective") {
    said.push(collectiveSentence(data, data.collectives[moment.collective], words, say));
  } else if (moment.what === "free") {
    said.push(words.free[moment.phase](moment.layer, data.ranks));
  } else {
    said.push(words[moment.what](data.ranks));
  }
  for (const number of moment.open) {
    const { collective, layers } = data.collectives[number];
    if (number === moment.collective || !layers.length) continue;
    said.push(say.meanwhile(titleOf(collective), say.layers(layers)));
  }
  return said;
}

/** The usual name of a collective. */
export function titleOf(collective) {
  return collective.replaceAll("_", "-");
}

function collectiveSentence(data, one, words, say) {
  const told = words[one.collective];
  const bytes = exactBytes(one.bytes);
  if (!one.layers.length) return say.exist(one.bytes, one.bytes - 1);
  if (typeof told === "object") return (told[one.name] ?? told[one.phase])(bytes, say.layers(one.layers), data.ranks);
  return told(bytes, say.layers(one.layers), data.ranks);
}

const SAY = {
  en: {
    layers: (layers) =>
      layers.length === 1 ? `layer ${layers[0]}` : `layers ${joined([...layers].reverse(), "and")}`,
    meanwhile: (title, what) => `Meanwhile, the ${title} of ${what} is running.`,
    exist: (bytes, tensors) =>
      `A last, tiny all-reduce starts: ${bytes} bytes, one for each of ${tensors} parameter tensors plus one. It tells every rank which gradients exist.`,
    data_parallel: {
      begin: (ranks) =>
        `All ${ranks} ranks hold the same complete model and its Adam state. Each rank gets different rows of the batch.`,
      forward: (layer) =>
        `Every rank computes layer ${layer} forward on its own rows and keeps the activations for the backward pass. Nothing is sent.`,
      loss: () =>
        "Every rank computes the loss of its own rows. The forward pass is finished; at this moment the ranks hold the most activations.",
      backward: (layer) =>
        `Every rank computes the gradients of layer ${layer} from its own rows, so they differ from rank to rank. The activations of this layer are freed.`,
      all_reduce: (bytes, layers) =>
        `A bucket is full: one all-reduce starts to average the gradients of ${layers}, ${bytes}, over all ranks. No rank waits for it.`,
      ready: () =>
        "The backward pass is finished, and every rank waits for the all-reduces that are still running. Then all ranks have the same averaged gradients.",
      update: () =>
        "Every rank takes a step with Adam. All ranks have the same gradients and take the same step, so no parameters need to be sent.",
      end: () => "The gradients are freed. The step is finished, and the models are still identical.",
    },
    tensor_parallel: {
      begin: (ranks) =>
        `Every rank holds 1/${ranks} of A, split by columns, 1/${ranks} of B, split by rows, and their Adam state. All ranks get the same input X.`,
      forward: {
        column: (ranks) =>
          `Every rank multiplies the whole X by its own columns of A and gets 1/${ranks} of the columns of the product, complete. Nothing is sent.`,
        activation: () =>
          "Every rank applies the activation function to its own part. It works on one number at a time, so nothing is sent.",
        row: (ranks) =>
          `Every rank multiplies its part by its own rows of B. The result has the shape of Y, but is only one of ${ranks} addends.`,
      },
      all_reduce: {
        forward: (bytes, _, ranks) =>
          `All-reduce of Y, ${bytes}: it sums the ${ranks} addends, and every rank has the whole Y. Every rank waits, because the next computation needs Y.`,
        backward: (bytes, _, ranks) =>
          `All-reduce of the gradient of X, ${bytes}: all ${ranks} ranks used X, so its gradient has ${ranks} addends. Every rank waits, because the layers before this one need it.`,
      },
      loss: () => "All ranks have the same Y and compute the same loss. The forward pass is finished.",
      backward: {
        column: () =>
          "Every rank computes the gradient of its own columns of A. No other rank has these columns, so this gradient is never sent.",
        activation: () => "Every rank goes back through the activation function in its own part. Nothing is sent.",
        row: () =>
          "Every rank has the whole gradient of Y and computes the gradient of its own rows of B from it. Nothing is sent.",
      },
      ready: () =>
        "The backward pass is finished. Only Y and the gradient of X were sent; no parameters, and no gradients of parameters.",
      update: () => "Every rank updates its own parts of A and B with Adam. Nothing is sent.",
      end: () => "The gradients are freed. The step is finished.",
    },
    zero3: {
      begin: (ranks) =>
        `Every rank holds 1/${ranks} of every layer and the Adam state of that part; nothing is stored twice. Each rank gets different rows of the batch.`,
      forward: (layer) => `Layer ${layer} is now complete on every rank, and every rank computes it on its own rows.`,
      all_gather: {
        forward: (bytes, layers, ranks) =>
          `The all-gather of ${layers}, ${bytes}, starts ahead of time: every rank sends its part and receives the other ${ranks - 1}.`,
        backward: (bytes, layers) =>
          `The all-gather of ${layers}, ${bytes}, runs again: the layer was freed after the forward pass, and the backward pass needs it.`,
      },
      reduce_scatter: (bytes, layers, ranks) =>
        `The reduce-scatter of the gradients of ${layers}, ${bytes}, starts: it averages them over all ranks, and every rank keeps its part, 1/${ranks} of them.`,
      free: {
        forward: (layer, ranks) => `Layer ${layer} is freed: every rank keeps only its own 1/${ranks} of it.`,
        backward: (layer, ranks) => `Layer ${layer} is freed again: every rank keeps only its own 1/${ranks}.`,
      },
      loss: () =>
        "Every rank computes the loss of its own rows. The forward pass is finished; only activations have accumulated, no parameters.",
      backward: (layer) =>
        `Layer ${layer} is complete again, and every rank computes its gradients from its own rows. For a moment it holds all of them.`,
      ready: () =>
        "The backward pass and the reduce-scatters are finished: every rank holds the averaged gradients of its own parts.",
      update: () =>
        "Every rank updates its own parts with Adam. Nothing is sent, since the next forward pass gathers the new values.",
      end: () => "The gradients are freed. The step is finished.",
    },
  },
  zh: {
    layers: (layers) => (layers.length === 1 ? `第 ${layers[0]} 层` : `第 ${[...layers].reverse().join("、")} 层`),
    meanwhile: (title, what) => `与此同时，${what}的 ${title} 正在进行。`,
    exist: (bytes, tensors) =>
      `最后还有一个很小的 all-reduce：${bytes} 字节，${tensors} 个参数张量各占一个字节，另加一个字节。它告诉所有 rank 哪些梯度存在。`,
    data_parallel: {
      begin: (ranks) => `${ranks} 个 rank 都有相同的完整模型和它的 Adam 状态。每个 rank 分到批次中不同的样本。`,
      forward: (layer) =>
        `每个 rank 用自己的样本对第 ${layer} 层做前向计算，并保留反向传播所需的激活值。不发送任何数据。`,
      loss: () => "每个 rank 计算自己样本的损失。前向传播结束，此时保留的激活值最多。",
      backward: (layer) =>
        `每个 rank 根据自己的样本计算第 ${layer} 层的梯度，各 rank 的结果不同。这一层的激活值随即释放。`,
      all_reduce: (bytes, layers) =>
        `一个桶满了：${layers}的梯度（${bytes}）开始做一次 all-reduce，在所有 rank 之间求平均。没有 rank 停下来等它。`,
      ready: () => "反向传播结束，每个 rank 等待尚未完成的 all-reduce。之后所有 rank 都有相同的平均梯度。",
      update: () => "每个 rank 用 Adam 更新参数。梯度相同，更新结果也就相同，因此不需要发送参数。",
      end: () => "释放梯度。这个训练步结束，各 rank 的模型仍然相同。",
    },
    tensor_parallel: {
      begin: (ranks) =>
        `每个 rank 有 A 的 1/${ranks}（按列切）和 B 的 1/${ranks}（按行切），以及它们的 Adam 状态。所有 rank 的输入 X 相同。`,
      forward: {
        column: (ranks) =>
          `每个 rank 用完整的 X 乘以自己的那几列 A，得到乘积的 1/${ranks} 的列，而且已是最终结果。不发送任何数据。`,
        activation: () => "每个 rank 对自己的部分应用激活函数。激活函数对每个数单独计算，因此不发送任何数据。",
        row: (ranks) =>
          `每个 rank 用自己的部分乘以自己的那几行 B。结果的形状与 Y 相同，但只是 ${ranks} 个加数中的一个。`,
      },
      all_reduce: {
        forward: (bytes, _, ranks) =>
          `对 Y 做 all-reduce（${bytes}）：${ranks} 个加数求和，每个 rank 都得到完整的 Y。所有 rank 都要等待，因为后面的计算需要 Y。`,
        backward: (bytes, _, ranks) =>
          `对 X 的梯度做 all-reduce（${bytes}）：X 参与了全部 ${ranks} 个 rank 的计算，因此它的梯度有 ${ranks} 个加数。所有 rank 都要等待，因为前面的层需要它。`,
      },
      loss: () => "所有 rank 的 Y 相同，算出的损失也相同。前向传播结束。",
      backward: {
        column: () => "每个 rank 计算自己那几列 A 的梯度。其他 rank 没有这几列，因此这份梯度从不发送。",
        activation: () => "反向经过激活函数，每个 rank 只处理自己的部分。不发送任何数据。",
        row: () => "每个 rank 都有完整的 Y 的梯度，由此计算自己那几行 B 的梯度。不发送任何数据。",
      },
      ready: () => "反向传播结束。发送过的只有 Y 和 X 的梯度；参数和参数的梯度都没有发送。",
      update: () => "每个 rank 用 Adam 更新自己的那部分 A 和 B。不发送任何数据。",
      end: () => "释放梯度。这个训练步结束。",
    },
    zero3: {
      begin: (ranks) =>
        `每个 rank 只有每一层的 1/${ranks}，以及这部分的 Adam 状态：没有任何内容重复保存。每个 rank 分到批次中不同的样本。`,
      forward: (layer) => `第 ${layer} 层此时在每个 rank 上都是完整的，各 rank 用自己的样本计算这一层。`,
      all_gather: {
        forward: (bytes, layers, ranks) =>
          `提前开始对${layers}做 all-gather（${bytes}）：每个 rank 发出自己的一份，收到另外 ${ranks - 1} 份。`,
        backward: (bytes, layers) =>
          `再次对${layers}做 all-gather（${bytes}）：这一层在前向传播之后已释放，而反向传播还需要它。`,
      },
      reduce_scatter: (bytes, layers, ranks) =>
        `开始对${layers}的梯度做 reduce-scatter（${bytes}）：在所有 rank 之间求平均，每个 rank 只保留自己的 1/${ranks}。`,
      free: {
        forward: (layer, ranks) => `释放第 ${layer} 层：每个 rank 只保留自己的 1/${ranks}。`,
        backward: (layer, ranks) => `再次释放第 ${layer} 层：每个 rank 只保留自己的 1/${ranks}。`,
      },
      loss: () => "每个 rank 计算自己样本的损失。前向传播结束；积累下来的只有激活值，没有参数。",
      backward: (layer) =>
        `第 ${layer} 层再次完整，每个 rank 根据自己的样本计算它的梯度，并短暂持有这一层的全部梯度。`,
      ready: () => "反向传播结束，reduce-scatter 也都完成：每个 rank 持有自己那部分参数的平均梯度。",
      update: () => "每个 rank 用 Adam 更新自己的部分。不发送任何数据：下一次前向传播会收集更新后的值。",
      end: () => "释放梯度。这个训练步结束。",
    },
  },
};

function joined(numbers, word) {
  return numbers.length === 2 ? numbers.join(` ${word} `) : numbers.join(", ");
}
