// node-llama-cpp timed as llama-bench would: the same options (those tools/bench_peer uses), the
// same JSON. Run by tools/bench_peer where no llama-bench is given.
//
//   node node_llama.mjs FOLDER -m FILE [-p N] [-n N] [-d N] [-t N] [-r N] [-fa 0,1] [-o json]
//                      [--no-warmup]
//
// FOLDER holds node_modules.
import path from "node:path";
import process from "node:process";
import {pathToFileURL} from "node:url";

function readArguments(words) {
  const options = {"-m": "", "-p": "512", "-n": "128", "-d": "0", "-t": "1", "-r": "5", "-fa": "0",
    "-o": "json"};
  let warmup = true;
  for (let i = 0; i < words.length; i++) {
    if (words[i] === "--no-warmup") {
      warmup = false;
    } else if (words[i] in options && i + 1 < words.length) {
      options[words[i]] = words[++i];
    } else {
      throw new Error(`unknown argument ${words[i]}`);
    }
  }
  return {...options, warmup};
}

// Always the same tokens, none of them special.
function tokensOf(model, count, seed) {
  const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  let state = seed;
  return Array.from({length: count}, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 3 + (state >>> 8) % (vocabulary - 8);
  });
}

async function generate(sequence, first, count) {
  let left = count;
  for await (const token of sequence.evaluate([first], {temperature: 0, yieldEogToken: true})) {
    if (--left === 0 || token === undefined) break;
  }
  if (left !== 0) throw new Error("the peer stopped writing tokens early");
}

// One test, in nanoseconds, on an empty sequence or behind `depth` tokens.
async function runOnce(model, sequence, test) {
  await sequence.clearHistory();
  if (test.depth > 0) {
    await sequence.evaluateWithoutGeneratingNewTokens(tokensOf(model, test.depth, 7));
  }
  const prompt = tokensOf(model, test.prompt, 1);
  const begin = process.hrtime.bigint();
  if (test.prompt > 0) await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  if (test.gen > 0) await generate(sequence, tokensOf(model, 1, 5)[0], test.gen);
  return Number(process.hrtime.bigint() - begin);
}

async function runTest(model, test, options) {
  const context = await model.createContext({
    contextSize: test.depth + test.prompt + test.gen + 8, batchSize: 512,
    threads: {ideal: test.threads, min: test.threads}, flashAttention: test.flashAttention,
  });
  const sequence = context.getSequence();
  if (options.warmup) {
    await runOnce(model, sequence, {...test, depth: 0, gen: Math.min(test.gen, 1)});
  }
  const samples = [];
  for (let i = 0; i < Number(options["-r"]); i++) {
    samples.push(await runOnce(model, sequence, test));
  }
  await context.dispose();
  const speeds = samples.map((ns) => 1e9 * (test.prompt + test.gen) / ns);
  return {
    n_prompt: test.prompt, n_gen: test.gen, n_depth: test.depth, n_threads: test.threads,
    flash_attn: test.flashAttention ? 1 : 0, samples_ns: samples, samples_ts: speeds,
  };
}

async function main() {
  const [folder, ...words] = process.argv.slice(2);
  const options = readArguments(words);
  const module = path.resolve(folder, "node_modules", "node-llama-cpp", "dist", "index.js");
  const {getLlama, LlamaLogLevel} = await import(pathToFileURL(module).href);
  const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, maxThreads: 0, progressLogs: false,
    logLevel: LlamaLogLevel.error,
  });
  const model = await llama.loadModel({modelPath: options["-m"]});
  const lengths = [[Number(options["-p"]), 0], [0, Number(options["-n"])]];
  const results = [];
  for (const flashAttention of options["-fa"].split(",")) {
    for (const [prompt, gen] of lengths) {
      if (prompt + gen === 0) continue;
      results.push(await runTest(model, {
        prompt, gen, depth: Number(options["-d"]), threads: Number(options["-t"]),
        flashAttention: flashAttention === "1",
      }, options));
    }
  }
  process.stdout.write(JSON.stringify(results, null, 2) + "\n");
  await llama.dispose();
}

main().then(() => process.exit(0), (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
