"""Qwen's first models (Qwen, Qwen-VL) in torch, for which transformers has no class. Written from their description, with
modules named like the published checkpoints' tensors, so that PEFT can wrap them. test_qwen1_reference.py compares its parts
with torch's, transformers' and OpenCLIP's.
"""

import math

import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers.modeling_outputs import CausalLMOutput


class QWenConfig(transformers.PretrainedConfig):
    model_type = "qwen"
    attribute_map = {"num_key_value_heads": "num_attention_heads", "head_dim": "kv_channels"}

    def __init__(self, vocab_size=151936, hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, layer_norm_epsilon=1e-6,
                 max_position_embeddings=8192, kv_channels=128, rotary_pct=1.0, rotary_emb_base=10000, use_dynamic_ntk=True,
                 use_logn_attn=True, intermediate_size=22016, no_bias=True, tie_word_embeddings=False, seq_length=2048, visual=None,
                 **more):
        for name, value in list(locals().items()):
            if name not in ("self", "more", "__class__", "tie_word_embeddings"):
                setattr(self, name, value)
        super().__init__(tie_word_embeddings=tie_word_embeddings, **more)


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


def ntk_alpha(length, trained):
    """1 up to the training length, 3 up to twice that, 7 up to four times that."""
    return max(2 ** math.ceil(math.log(length / trained, 2) + 1) - 1, 1)


def rotation(config, length, prompt, in_training):
    """(cosines, sines) [length, dim] of a sequence whose first `prompt` tokens came in one pass."""
    dim = config.kv_channels
    alpha = ntk_alpha(prompt, config.seq_length) if config.use_dynamic_ntk and not in_training else 1
    base = config.rotary_emb_base * alpha ** (dim / (dim - 2))
    angles = torch.outer(torch.arange(length).float(), 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))
    return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def rotated(x, cos, sin):
    """x: [batch, length, heads, dim]; the two halves of a head are rotated together."""
    wide = x.float()
    first, second = wide.chunk(2, -1)
    return (wide * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]).type_as(x)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width = config.kv_channels * config.num_attention_heads
        self.c_attn = nn.Linear(config.hidden_size, 3 * width)
        self.c_proj = nn.Linear(width, config.hidden_size, bias=not config.no_bias)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, self.config.num_attention_heads, -1) for part in self.c_attn(x).chunk(3, -1))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if self.config.use_logn_attn and not self.training:
            trained = self.config.seq_length
            scale = torch.tensor([math.log(i, trained) if i > trained else 1 for i in range(1, length + 1)])
            q = q * scale.type_as(q)[:, None, None]
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-1, -2) / self.config.kv_channels**0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), torch.finfo(scores.dtype).min)
        return self.c_proj((scores.softmax(-1).type_as(v) @ v).transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner, bias = config.intermediate_size // 2, not config.no_bias
        self.w1 = nn.Linear(config.hidden_size, inner, bias=bias)
        self.w2 = nn.Linear(config.hidden_size, inner, bias=bias)
        self.c_proj = nn.Linear(inner, config.hidden_size, bias=bias)

    def forward(self, x):
        return self.c_proj(self.w1(x) * functional.silu(self.w2(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = (RmsNorm(config.hidden_size, config.layer_norm_epsilon) for _ in range(2))
        self.attn, self.mlp = Attention(config), Mlp(config)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.ln_1(x), cos, sin)
        return x + self.mlp(self.ln_2(x))


def interpolated(positions, count):
    """Interpolates a square grid of positions to `count` positions."""
    side, wanted = math.isqrt(len(positions)), math.isqrt(count)
    if side == wanted:
        return positions
    grid = positions.float().view(1, side, side, -1).permute(0, 3, 1, 2)
    grid = functional.interpolate(grid, size=(wanted, wanted), mode="bicubic", align_corners=False)
    return grid.permute(0, 2, 3, 1).reshape(count, -1).to(positions.dtype)


def norm(width):
    return nn.LayerNorm(width, eps=1e-6)


class VisualAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.in_proj(x).view(batch, length, self.heads, -1).transpose(1, 2).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class VisualBlock(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.ln_1, self.ln_2, self.attn = norm(width), norm(width), VisualAttention(width, heads)
        self.mlp = nn.Sequential()
        for name, part in (("c_fc", nn.Linear(width, inner)), ("gelu", nn.GELU()), ("c_proj", nn.Linear(inner, width))):
            self.mlp.add_module(name, part)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Resampler(nn.Module):
    def __init__(self, queries, width, patch_width):
        super().__init__()
        self.pos_embed = nn.Parameter(torch.zeros(queries, width), requires_grad=False)
        self.query = nn.Parameter(torch.zeros(queries, width))
        self.kv_proj = nn.Linear(patch_width, width, bias=False) if patch_width != width else nn.Identity()
        self.attn = nn.MultiheadAttention(width, width // 128)
        self.ln_q, self.ln_kv = norm(width), norm(width)

    def forward(self, x):
        x = self.ln_kv(self.kv_proj(x)).transpose(0, 1)
        q = (self.ln_q(self.query) + self.pos_embed)[:, None].expand(-1, x.shape[1], -1)
        return self.attn(q, x + interpolated(self.pos_embed, len(x))[:, None], x, need_weights=False)[0].transpose(0, 1)


class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch_size, width, layers, heads, mlp_ratio, output_dim, n_queries=256, **_):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, patch_size, patch_size, bias=False)
        self.positional_embedding = nn.Parameter(torch.zeros(256, width))
        self.ln_pre, self.ln_post = norm(width), norm(output_dim)
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList(VisualBlock(width, heads, int(width * mlp_ratio)) for _ in range(layers))
        self.attn_pool = Resampler(n_queries, output_dim, width)
        self.proj = nn.Parameter(torch.zeros(output_dim, output_dim))

    def patches(self, pixels):
        """The last block's output for each patch."""
        x = self.conv1(pixels.to(self.conv1.weight.dtype)).flatten(2).transpose(1, 2)
        x = self.ln_pre(x + interpolated(self.positional_embedding, x.shape[1]))
        for block in self.transformer.resblocks:
            x = block(x)
        return x

    def forward(self, pixels):
        return self.ln_post(self.attn_pool(self.patches(pixels))) @ self.proj


class QWenModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        self.h = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.ln_f = RmsNorm(config.hidden_size, config.layer_norm_epsilon)
        if config.visual:
            self.visual = VisionTransformer(**config.visual)


class QWenLMHeadModel(transformers.PreTrainedModel, transformers.GenerationMixin):
    config_class = QWenConfig
    base_model_prefix = "transformer"
    _supports_sdpa = True  # like the other models in the tests; its attention uses SDPA
    _tied_weights_keys = {} if int(transformers.__version__.split(".")[0]) >= 5 else None

    def __init__(self, config):
        super().__init__(config)
        self.transformer = QWenModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        pass

    def get_input_embeddings(self):
        return self.transformer.wte

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids, attention_mask=None, pixel_values=None, prompt_length=None, **_):
        """attention_mask: must be all ones. prompt_length: number of ids that came in one pass; None:
        all."""
        config, parts = self.config, self.transformer
        x = parts.wte(input_ids)
        if pixel_values is not None:
            x = x.clone()
            begins = (input_ids == config.visual["image_start_id"]).nonzero()
            for (row, begin), rows in zip(begins.tolist(), parts.visual(pixel_values), strict=True):
                assert input_ids[row, begin + len(rows) + 1] == config.visual["image_start_id"] + 1
                x[row, begin + 1:begin + 1 + len(rows)] = rows
        length = input_ids.shape[1]
        cos, sin = rotation(config, length, prompt_length or length, self.training)
        for block in parts.h:
            x = block(x, cos, sin)
        x = parts.ln_f(x)
        return CausalLMOutput(logits=self.lm_head(x), hidden_states=(x,))


transformers.AutoConfig.register("qwen", QWenConfig)
