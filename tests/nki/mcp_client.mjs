// The oracle for assistants, asked by a client that is not ours: prints a transcript, status 0 if it is as it should be.
// usage: npm install @modelcontextprotocol/sdk, in a folder with a copy of this; PYTHONPATH=... node mcp_client.mjs
import assert from "node:assert";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const kernel = `import nki, nki.isa as nisa, nki.language as nl
@nki.jit
def kernel(x):
    out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.activation(dst=t, op=nl.exp, data=t)
    nisa.dma_copy(dst=out, src=t)
    return out
`;
const about = { arguments: [{ shape: [128, 64] }], reference: { source: "import numpy as np\ndef f(x): return np.exp(x)" } };
const wrong = kernel.replace("nl.exp", "nl.tanh");
const python = process.env.PYTHON ?? "python3";
const transport = new StdioClientTransport({ command: python, args: ["-m", "nki.oracle", "--mcp"], env: { ...process.env } });
const client = new Client({ name: "test", version: "1" });

async function call(name, given) {
    const said = await client.callTool({ name, arguments: given });
    console.log(name, said.isError, JSON.stringify(said.structuredContent).slice(0, 160));
    return said;
}

await client.connect(transport);
console.log(client.getServerVersion(), (await client.listTools()).tools.map((tool) => tool.name));
assert.equal((await call("check_kernel", { source: kernel, ...about })).structuredContent.right, true);
assert.equal((await call("check_kernel", { source: wrong, ...about })).structuredContent.right, false);
assert.equal((await call("check_kernel", { source: 3 })).isError, true);
const variants = [{ source: wrong, name: "a" }, { source: kernel, name: "b" }];
assert.deepEqual((await call("rank_kernels", { variants, ...about })).structuredContent.ranking, ["b"]);
await assert.rejects(call("none", {}), /there is no tool/);
await client.close();
