"""Checks our own reference for Qwen and Qwen-VL against equivalent parts of torch and transformers."""

import pytest
import torch
import transformers

import checkpoints
import families
import qwen1_reference


@torch.no_grad()
def as_qwen2(model, theta):
    """The decoder as Qwen2, which has separate queries, keys and values, with as many heads of
    each."""
    c = model.config
    qwen2 = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, intermediate_size=c.intermediate_size // 2, num_hidden_layers=c.num_hidden_layers,
        num_attention_heads=c.num_attention_heads, num_key_value_heads=c.num_attention_heads, rms_norm_eps=c.layer_norm_epsilon,
        rope_theta=theta, max_position_embeddings=c.max_position_embeddings, tie_word_embeddings=False, use_sliding_window=False,
        attn_implementation="eager")).eval()
    own, tensors = model.state_dict(), {}
    names = {"transformer.wte": "model.embed_tokens", "transformer.ln_f": "model.norm", "lm_head": "lm_head"}
    for i in range(c.num_hidden_layers):
        at, to = f"transformer.h.{i}.", f"model.layers.{i}."
        names |= {at + "ln_1": to + "input_layernorm", at + "ln_2": to + "post_attention_layernorm", at + "attn.c_proj": to + "self_attn.o_proj",
                  at + "mlp.w1": to + "mlp.up_proj", at + "mlp.w2": to + "mlp.gate_proj", at + "mlp.c_proj": to + "mlp.down_proj"}
        for kind in ("weight", "bias"):
            parts = own[f"{at}attn.c_attn.{kind}"].chunk(3)
            tensors |= {f"{to}self_attn.{name}_proj.{kind}": part for name, part in zip("qkv", parts)}
    qwen2.load_state_dict(tensors | {f"{new}.weight": own[f"{old}.weight"] for old, new in names.items()})
    return qwen2


@torch.no_grad()
@pytest.mark.parametrize("length, alpha", [(60, 1), (96, 1), (97, 3), (192, 3), (193, 7), (384, 7), (385, 15)])
def test_reference_decoder_equals_qwen2(length, alpha):
    """Beyond the training length with a larger theta; the scaling of late queries is tested separately
    below."""
    config = checkpoints.MODELS["qwen1-text"]()
    config.use_logn_attn = False
    model = checkpoints.randomise(families.QWEN1.kind(config), 5)
    ids = torch.randint(0, config.vocab_size, (1, length), generator=torch.Generator().manual_seed(length))
    theta = 10000 * alpha ** (config.kv_channels / (config.kv_channels - 2))
    distance = (model(ids).logits - as_qwen2(model, theta)(ids).logits).abs().max()
    assert distance < 1e-4, distance


@torch.no_grad()
def test_queries_beyond_the_training_length_are_scaled():
    """With one head whose keys are rows of an identity matrix, the scores can be read from the weights of torch's
    attention."""
    config = qwen1_reference.QWenConfig(hidden_size=8, num_attention_heads=1, kv_channels=8, seq_length=4, intermediate_size=4)
    attention = qwen1_reference.Attention(config).eval()
    x = torch.randn(1, 9, 8, generator=torch.Generator().manual_seed(3))
    no_turn = torch.ones(9, 8), torch.zeros(9, 8)
    q, k, v = attention.c_attn(x).chunk(3, -1)
    scale = torch.tensor([1, 1, 1, 1] + [torch.log(torch.tensor(float(i))) / torch.log(torch.tensor(4.0)) for i in range(5, 10)])
    expected = torch.nn.functional.scaled_dot_product_attention(q * scale[:, None], k, v, is_causal=True)
    assert (attention(x, *no_turn) - attention.c_proj(expected)).abs().max() < 1e-5
    attention.train()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (attention(x, *no_turn) - attention.c_proj(expected)).abs().max() < 1e-5


@torch.no_grad()
def test_reference_tower_blocks_equal_torch():
    """torch stores all queries, then all keys, then all values in one weight."""
    tower = checkpoints.make_model("qwen1-vl").transformer.visual
    x = torch.randn(2, 16, 48, generator=torch.Generator().manual_seed(4))
    expected = x
    for block in tower.transformer.resblocks:
        own = torch.nn.TransformerEncoderLayer(48, 3, int(48 * 2.7), 0.0, "gelu", 1e-6, batch_first=True, norm_first=True).eval()
        order = torch.arange(144).view(3, 3, 16).transpose(0, 1).reshape(-1)  # from grouped by head to grouped by kind
        own.self_attn.in_proj_weight.copy_(block.attn.in_proj.weight[order])
        own.self_attn.in_proj_bias.copy_(block.attn.in_proj.bias[order])
        for mine, theirs in ((own.self_attn.out_proj, block.attn.out_proj), (own.linear1, block.mlp.c_fc), (own.linear2, block.mlp.c_proj),
                             (own.norm1, block.ln_1), (own.norm2, block.ln_2)):
            mine.load_state_dict(theirs.state_dict())
        expected, x = own(expected), block(x)
    assert (expected - x).abs().max() < 1e-5
