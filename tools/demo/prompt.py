"""The chat format, and packing of several question/answer pairs behind one shared picture."""

import torch

SYSTEM = "You are a helpful assistant."
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
ASK = "<|im_end|>\n<|im_start|>assistant\n"
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if loop.first and message['role'] != 'system' -%}{{ '<|im_start|>system\\n" + SYSTEM + "<|im_end|>\\n' }}{%- endif -%}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['content'] is string -%}{{ message['content'] }}"
    "{%- else -%}{%- for part in message['content'] -%}"
    "{%- if part['type'] in ['image', 'image_url'] or 'image' in part -%}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- elif part['type'] in ['video', 'video_url'] or 'video' in part -%}{{ '<|vision_start|><|video_pad|><|vision_end|>' }}"
    "{%- elif 'text' in part -%}{{ part['text'] }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}{{ '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}")


def media(tokens, video):
    pad = "<|video_pad|>" if video else "<|image_pad|>"
    return f"<|vision_start|>{pad * tokens}<|vision_end|>" if tokens else ""


class Packer:
    """Rows of one batch: a shared prefix, followed by pairs that attend only to the prefix and
    themselves."""

    def __init__(self, tokenizer, model):
        self.tokenizer, self.model, self.config = tokenizer, model.model, model.config
        self.prefixes, self.ids = {}, {}

    def encode(self, text):
        if text not in self.ids:
            self.ids[text] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.ids[text]

    def prefix(self, grid, video):
        """Token ids and three-axis positions of everything before the question; grid: t, h, w or None."""
        if (grid, video) not in self.prefixes:
            tokens = grid[0] * grid[1] * grid[2] // 4 if grid else 0
            ids = torch.tensor([self.encode(HEAD + media(tokens, video))])
            thw = torch.tensor([grid]) if grid else None
            positions, _ = self.model.get_rope_index(ids, None if video else thw, thw if video else None, torch.ones_like(ids))
            self.prefixes[grid, video] = ids[0].tolist(), positions[:, 0].long()
        return self.prefixes[grid, video]

    def pack(self, rows, grid, video):
        """rows: for each picture, a list of (question, answer) or (question ids, answer ids)."""
        head, head_positions = self.prefix(grid, video)
        start = int(head_positions.max()) + 1
        all_ids, all_positions, all_parts, all_labels = [], [], [], []
        for pairs in rows:
            ids, parts, labels, tail = list(head), [0] * len(head), [-100] * len(head), []
            for part, (question, answer) in enumerate(pairs, 1):
                q = self.encode(question + ASK) if isinstance(question, str) else question
                a = self.encode(answer) if isinstance(answer, str) else answer
                a = a + self.encode("<|im_end|>")
                ids += q + a[:-1]
                labels += [-100] * (len(q) - 1) + a
                size = len(q) + len(a) - 1
                parts += [part] * size
                tail += range(start, start + size)
            all_ids.append(ids), all_parts.append(parts), all_labels.append(labels), all_positions.append(tail)
        length = max(map(len, all_ids))
        pad = lambda rows, value: torch.tensor([r + [value] * (length - len(r)) for r in rows])
        ids, parts, labels = pad(all_ids, 0), pad(all_parts, -1), pad(all_labels, -100)
        tails = torch.tensor([t + [0] * (length - len(head) - len(t)) for t in all_positions])
        positions = torch.cat([head_positions[:, None].expand(-1, len(rows), -1), tails[None].expand(3, -1, -1)], dim=2)
        see = (parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None])
        see &= torch.ones(length, length, dtype=torch.bool).tril()
        see |= torch.eye(length, dtype=torch.bool)
        return {"ids": ids, "positions": positions, "labels": labels, "see": see[:, None]}
