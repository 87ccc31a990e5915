// Written by `ingot export --wasm`: loads NAME.wasm and runs it. Inputs and outputs are typed arrays by name.
const INPUTS = [];
const OUTPUTS = [];

/** Compiles the module: from its address (as a rule beside this file), its bytes, or compiled already. */
export async function load(source = new URL("NAME.wasm", import.meta.url)) {
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(await bytes(source));
  return new Model(await WebAssembly.instantiate(module, {}));
}

async function bytes(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const address = new URL(source, import.meta.url);
  if (address.protocol === "file:" && typeof process !== "undefined") {
    return (await import("node:fs/promises")).readFile(address);
  }
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

/** One instance: its memory holds inputs, outputs and workspace; calls are one after the other. */
export class Model {
  #exports;
  inputs = INPUTS;
  outputs = OUTPUTS;

  constructor(instance) {
    this.#exports = instance.exports;
  }

  /** Runs the model; takes an object of typed arrays by name, and returns one. */
  run(inputs) {
    const names = INPUTS.map((tensor) => tensor.name);
    const unknown = Object.keys(inputs).find((name) => !names.includes(name));
    if (unknown !== undefined) throw new TypeError(`no input ${unknown}: expected ${names.join(", ")}`);
    INPUTS.forEach((tensor, number) => this.#view("input", tensor, number).set(checked(inputs[tensor.name], tensor)));
    const code = this.#exports.run();
    if (code !== 0) throw new RangeError(this.#text(this.#exports.message(code)));
    return Object.fromEntries(
      OUTPUTS.map((tensor, number) => [tensor.name, this.#view("output", tensor, number).slice()]),
    );
  }

  #view(kind, tensor, number) {
    return new globalThis[tensor.array](this.#exports.memory.buffer, this.#exports[kind](number), count(tensor));
  }

  #text(at) {
    const memory = new Uint8Array(this.#exports.memory.buffer);
    return new TextDecoder().decode(memory.slice(at, memory.indexOf(0, at)));
  }
}

function count(tensor) {
  return tensor.shape.reduce((product, size) => product * size, 1);
}

function checked(array, tensor) {
  const wanted = `input ${tensor.name}: expected ${tensor.array} of ${count(tensor)} numbers, ${tensor.dtype}[${tensor.shape}]`;
  if (array?.constructor?.name !== tensor.array) throw new TypeError(`${wanted}, got ${array?.constructor?.name ?? array}`);
  if (array.length !== count(tensor)) throw new TypeError(`${wanted}, got ${array.length}`);
  return array;
}
