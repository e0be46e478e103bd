/* kernel.c - the NKI kernel and the README of a directory.
 * SPDX-License-Identifier: MIT
 *
 * The kernel's text follows the documented signatures of NKI 0.6 (nki.isa.nc_matmul, nc_matmul_mx, dma_copy,
 * tensor_copy, memset; views of another dtype by NkiTensor.ap; the quadrants of MX scales from the quantize_mx page).
 * It has not met hardware, only stand-ins for NKI and PyTorch that add exactly, so lines that call those say so.
 */
#include "probe.h"

#include <string.h>

static const char *const mode_name[] = { "plain", "rows", "double_row", "mx", "psum_bf16" };

static bool is_for(const probe_tile *t, trn_generation generation)
{
    return t->generations & probe_generation_bit(generation);
}

/* As nki.language calls the operands; MX takes four elements to a word. */
static void print_tile(FILE *out, const probe_tile *t)
{
    const bool rows = t->mode == PROBE_ROWS || t->mode == PROBE_PSUM_BF16;
    fprintf(out, "    (\"%s\", \"%s\", \"%s%s\", %d, %d, %d, %d, %d),\n", t->name, mode_name[t->mode],
            trn_format_name(t->format), t->mode == PROBE_MX ? "_x4" : "", t->k, t->m, t->n, rows ? t->step : t->k,
            rows ? t->repeat : 1);
}

static const char head[] =
    "# On a %s instance, in an environment with the Neuron SDK (NKI 0.6, PyTorch/XLA) and NumPy:\n"
    "#\n"
    "#     python3 probe_kernel.py              runs every tile of in/ and writes out/; names of tiles: only those\n"
    "#     python3 probe_kernel.py --dry-run    anywhere: are the inputs there, and of the right shapes?\n"
    "#\n"
    "# NOT TESTED ON HARDWARE. Written from the documented signatures of NKI; lines marked \"# untested\" call NKI or "
    "PyTorch\n"
    "# and have met stand-ins for them only, which add exactly. What matters: one instruction per call, nothing "
    "between the\n"
    "# operands and the engine but a view of their codes as numbers, and no cast of what PSUM holds but bfloat16 to "
    "float32,\n"
    "# which is exact.\n"
    "import os\n"
    "import sys\n"
    "\n"
    "import numpy as np\n"
    "\n"
    "HERE = os.path.dirname(os.path.abspath(__file__))\n"
    "\n"
    "# name, mode, dtype in nki.language, K, M, N, rows of K per instruction, repetitions\n"
    "TILES = [\n";

static const char host[] =
    "]\n"
    "\n"
    "\n"
    "def load(name, what):\n"
    "    return np.load(os.path.join(HERE, \"in\", f\"{name}_{what}.npy\"))\n"
    "\n"
    "\n"
    "def shapes(mode, k, m, n):\n"
    "    \"\"\"Of the stationary and the moving file.\"\"\"\n"
    "    if mode == \"double_row\":\n"
    "        return (k, 2, m), (k, 2, n)\n"
    "    if mode == \"mx\":\n"
    "        return (k, m, 4), (k, n, 4)\n"
    "    return (k, m), (k, n)\n"
    "\n"
    "\n"
    "def words(array, mode):\n"
    "    \"\"\"What PyTorch can hold of it: 16-bit codes as int16, four MX elements as one int32, element 0 "
    "lowest.\"\"\"\n"
    "    if mode == \"mx\":\n"
    "        return np.ascontiguousarray(array).view(np.int32)[:, :, 0]\n"
    "    return array.view(np.int16) if array.dtype == np.uint16 else array\n"
    "\n"
    "\n"
    "def operands(tile):\n"
    "    name, mode, _, k, m, n, _, _ = tile\n"
    "    pair = load(name, \"stationary\"), load(name, \"moving\")\n"
    "    for array, shape in zip(pair, shapes(mode, k, m, n)):\n"
    "        if array.shape != shape:\n"
    "            sys.exit(f\"{name}: shape {array.shape}, expected {shape}\")\n"
    "    return [words(array, mode) for array in pair]\n"
    "\n"
    "\n"
    "if \"--dry-run\" not in sys.argv[1:]:\n"
    "    import nki  # untested\n"
    "    import nki.isa as nisa  # untested\n"
    "    import nki.language as nl  # untested\n"
    "    import torch  # untested\n"
    "    import torch_xla  # untested\n"
    "\n"
    "    def evict(psum, shape, dtype):\n"
    "        copy = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)  # untested\n"
    "        nisa.tensor_copy(dst=copy, src=psum)  # untested\n"
    "        result = nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)  # untested\n"
    "        nisa.dma_copy(dst=result, src=copy)  # untested\n"
    "        return result\n"
    "\n"
    "    # One nc_matmul for each `step` rows of K, `repeat` times over, all into one PSUM tile.\n";

/* %s: the decorator's arguments */
static const char rows_kernel[] =
    "    @nki.jit%s  # untested\n"
    "    def rows(stationary, moving, dtype, psum_dtype, step, repeat):\n"
    "        k, m = stationary.shape\n"
    "        n = moving.shape[1]\n"
    "        psum = nl.ndarray((m, n), dtype=psum_dtype, buffer=nl.psum)  # untested\n"
    "        for i in range(repeat):\n"
    "            for first in range(0, k, step):\n"
    "                s = nl.ndarray((step, m), dtype=dtype, buffer=nl.sbuf)  # untested\n"
    "                x = nl.ndarray((step, n), dtype=dtype, buffer=nl.sbuf)  # untested\n"
    "                nisa.dma_copy(dst=s, src=stationary.ap(dtype=dtype, pattern=[[m, step], [1, m]], offset=first * "
    "m))  # untested\n"
    "                nisa.dma_copy(dst=x, src=moving.ap(dtype=dtype, pattern=[[n, step], [1, n]], offset=first * n))  "
    "# untested\n"
    "                nisa.nc_matmul(dst=psum, stationary=s, moving=x, accumulate=i > 0 or first > 0)  # untested\n"
    "        return evict(psum, (m, n), psum_dtype)\n"
    "\n";

static const char pairs_kernel[] = "    @nki.jit%s  # untested\n"
                                   "    def pairs(stationary, moving, dtype):\n"
                                   "        k, _, m = stationary.shape\n"
                                   "        n = moving.shape[2]\n"
                                   "        psum = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)  # untested\n"
                                   "        s = nl.ndarray((k, 2, m), dtype=dtype, buffer=nl.sbuf)  # untested\n"
                                   "        x = nl.ndarray((k, 2, n), dtype=dtype, buffer=nl.sbuf)  # untested\n"
                                   "        nisa.dma_copy(dst=s, src=stationary.ap(dtype=dtype, pattern=[[2 * m, k], "
                                   "[m, 2], [1, m]], offset=0))  # untested\n"
                                   "        nisa.dma_copy(dst=x, src=moving.ap(dtype=dtype, pattern=[[2 * n, k], [n, "
                                   "2], [1, n]], offset=0))  # untested\n"
                                   "        nisa.nc_matmul(dst=psum, stationary=s, moving=x, accumulate=False, "
                                   "perf_mode=nisa.matmul_perf_mode.double_row)  # untested\n"
                                   "        return evict(psum, (m, n), nl.float32)  # untested\n"
                                   "\n";

static const char mx_kernel[] =
    "    # Scale rows 4q to 4q + 3 lie in the first four partitions of quadrant q.\n"
    "    def scales(hbm, k):\n"
    "        lanes = hbm.shape[1]\n"
    "        tile = nl.ndarray((k if k > 32 else k // 8, lanes), dtype=nl.uint8, buffer=nl.sbuf)  # untested\n"
    "        nisa.memset(dst=tile, value=0)  # untested\n"
    "        for q in range(k // 32):\n"
    "            nisa.dma_copy(dst=tile[32 * q : 32 * q + 4, :], src=hbm[4 * q : 4 * q + 4, :])  # untested\n"
    "        return tile\n"
    "\n"
    "    @nki.jit%s  # untested\n"
    "    def quads(stationary, moving, stationary_scale, moving_scale, dtype):\n"
    "        k, m = stationary.shape\n"
    "        n = moving.shape[1]\n"
    "        psum = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)  # untested\n"
    "        s = nl.ndarray((k, m), dtype=dtype, buffer=nl.sbuf)  # untested\n"
    "        x = nl.ndarray((k, n), dtype=dtype, buffer=nl.sbuf)  # untested\n"
    "        nisa.dma_copy(dst=s, src=stationary.ap(dtype=dtype, pattern=[[m, k], [1, m]], offset=0))  # untested\n"
    "        nisa.dma_copy(dst=x, src=moving.ap(dtype=dtype, pattern=[[n, k], [1, n]], offset=0))  # untested\n"
    "        nisa.nc_matmul_mx(dst=psum, stationary=s, moving=x, accumulate=False,  # untested\n"
    "                          stationary_scale=scales(stationary_scale, k), moving_scale=scales(moving_scale, k))  # "
    "untested\n"
    "        return evict(psum, (m, n), nl.float32)  # untested\n"
    "\n";

/* %s: the calls that only some generations have */
static const char dispatch[] =
    "\n"
    "def run(tile, device):\n"
    "    name, mode, dtype, k, m, n, step, repeat = tile\n"
    "    send = lambda array: torch.from_numpy(np.ascontiguousarray(array)).to(device)  # untested\n"
    "    stationary, moving = (send(array) for array in operands(tile))\n"
    "    dtype = getattr(nl, dtype)  # untested\n"
    "%s"
    "    if mode == \"psum_bf16\":\n"
    "        return rows(stationary, moving, dtype, nl.bfloat16, step, repeat)  # untested\n"
    "    return rows(stationary, moving, dtype, nl.int32 if name == \"int32_overflow\" else nl.float32, step, repeat)  "
    "# untested\n"
    "\n"
    "\n"
    "def main():\n"
    "    wanted = [word for word in sys.argv[1:] if word != \"--dry-run\"]\n"
    "    tiles = [tile for tile in TILES if not wanted or tile[0] in wanted]\n"
    "    for tile in tiles:\n"
    "        operands(tile)\n"
    "    if \"--dry-run\" in sys.argv[1:]:\n"
    "        print(f\"{len(tiles)} tiles are complete\")\n"
    "        return\n"
    "    device = torch_xla.device()  # untested\n"
    "    for tile in tiles:\n"
    "        try:\n"
    "            result = run(tile, device).cpu()  # untested\n"
    "        except Exception as trouble:  # a tile that this chip or SDK refuses leaves its question open\n"
    "            print(f\"{tile[0]}: {trouble}\", file=sys.stderr)\n"
    "            continue\n"
    "        array = result.numpy() if tile[0] == \"int32_overflow\" else result.float().numpy()  # untested\n"
    "        np.save(os.path.join(HERE, \"out\", tile[0] + \".npy\"), array)\n"
    "        print(tile[0])\n"
    "\n"
    "\n"
    "main()\n";

void probe_kernel_text(FILE *out, trn_generation generation)
{
    const bool trn3 = generation == TRN_TRAINIUM3, trn1 = generation == TRN_TRAINIUM1;
    const char *target = trn3 ? "(platform_target=\"trn3\")" : "";
    const char *name = probe_generation_name(generation);
    char modes[400] = "";
    fprintf(out, head, name);
    for (int i = 0; i < probe_tile_count; i++)
        if (is_for(&probe_tiles[i], generation)) print_tile(out, &probe_tiles[i]);
    fputs(host, out);
    fprintf(out, rows_kernel, target);
    if (!trn1) fprintf(out, pairs_kernel, target);
    if (trn3) fprintf(out, mx_kernel, target);
    snprintf(modes, sizeof modes, "%s%s",
             trn1 ? ""
                  : "    if mode == \"double_row\":\n        return pairs(stationary, moving, dtype)  # untested\n",
             trn3 ? "    if mode == \"mx\":\n"
                    "        both = send(load(name, \"stationary_scale\")), send(load(name, \"moving_scale\"))\n"
                    "        return quads(stationary, moving, both[0], both[1], dtype)  # untested\n"
                  : "");
    fprintf(out, dispatch, modes);
}

/* ---- the README ---- */

static const char readme_head[] =
    "# Which adder is in this Tensor engine?\n"
    "\n"
    "Written by `probe --write` of trnmath for %s. Small matrix products whose results depend on how the array adds.\n"
    "\n"
    "1. Copy this directory to a %s instance and run `python3 probe_kernel.py` there. The kernel follows NKI's "
    "documentation and\n"
    "   has not been tested on hardware: correct it where the SDK disagrees, but leave one instruction per call and "
    "the codes\n"
    "   of the operands as they are. (`probe --run .` fills `out/` with this library's answers instead.)\n"
    "2. Copy it back and run `probe --identify .`: it names every setting of `trn_numerics` that predicts these "
    "outputs, and\n"
    "   says what they leave open. If none does, it names the nearest, and the tiles and elements that contradict it.\n"
    "\n"
    "Outputs that are missing are questions left open; outputs must come from exactly these inputs.\n"
    "\n"
    "| file | holds |\n"
    "|---|---|\n"
    "| `generation.txt` | %s |\n"
    "| `in/TILE_stationary.npy` `in/TILE_moving.npy` | [K, M] and [K, N]; pairs [K, 2, M] [K, 2, N]; MX [K, M, 4] [K, "
    "N, 4]. float32 and tfloat32 as `<f4`, float16 as `<f2`, bfloat16 as codes `<u2`, FP8 as codes `|u1` |\n"
    "| `in/TILE_stationary_scale.npy` `in/TILE_moving_scale.npy` | MX: [K/8, M] and [K/8, N], E8M0 codes, all 2^0 |\n"
    "| `out/TILE.npy` | [M, N], `<f4` (a bfloat16 PSUM converted); `<i4` for int8 |\n"
    "\n"
    "All outputs that decide anything are normal numbers or zeros, so that copying PSUM out through another engine "
    "cannot change them.\n"
    "\n"
    "| tile | path | K x M x N | asks |\n"
    "|---|---|---|---|\n";

static const char readme_bf16[] = "\n`psum_bf16` is one tile for two ways of rounding. NKI has no argument for it: if "
                                  "the engine rounds stochastically at all, it is\n"
                                  "when the runtime says so (`NEURON_RT_STOCHASTIC_ROUNDING_EN=1`). Run it both ways, "
                                  "in two copies of this directory.\n";

static const char readme_int8[] =
    "\nThe newest pages of NKI name Trn2 and Trn3 only: an older release may spell `accumulate` in its own way.\n"
    "`int32_overflow`: AWS lists INT8 for Trainium1, but NKI's nc_matmul does not take it. The tile is here for "
    "whoever finds a way.\n";

void probe_readme_text(FILE *out, trn_generation generation)
{
    const char *name = probe_generation_name(generation);
    fprintf(out, readme_head, name, name, name);
    for (int i = 0; i < probe_tile_count; i++) {
        const probe_tile *t = &probe_tiles[i];
        if (is_for(t, generation))
            fprintf(out, "| `%s` | %s | %d x %d x %d | %s |\n", t->name, t->kind, t->k, t->m, t->n, t->question);
    }
    if (generation == TRN_TRAINIUM3) fputs(readme_bf16, out);
    if (generation == TRN_TRAINIUM1) fputs(readme_int8, out);
}
