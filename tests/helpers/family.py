"""What all families of references have in common.

A family's functions take the parts of the tests' messages: strings, {"image": url} and {"video":
url}.
"""


import tokenizers
import transformers

from releases import (
    NEWEST,
)


def parts_of(message):
    return message["content"] if isinstance(message["content"], list) else [message["content"]]


def media_of(messages):
    return [part for message in messages for part in parts_of(message) if not isinstance(part, str)]


class Family:
    """A text-only family, and the base class of the vision-language families."""

    has_images = has_video = False
    media_tokens = ()  # a random model may generate these, and the reference would take them for media in the prompt

    def save(self, model, folder):
        """Saves everything except the model: all files with the newest release, otherwise only the
        required ones."""
        if NEWEST:
            self.processor(model.config).save_pretrained(folder)
            return
        self.tokenizer().save(str(folder / "tokenizer.json"))
        if self.has_images:
            self.image_processor(model.config).save_pretrained(folder)

    def mend(self, model):
        """Corrects deviations of this release of the reference from how the models were trained."""

    bos = None

    def fast_tokenizer(self):
        own = tokenizers.Tokenizer.from_str(self.tokenizer().to_str())  # a copy, because transformers changes it
        return transformers.PreTrainedTokenizerFast(tokenizer_object=own, bos_token=self.bos, eos_token=self.eos)

    def processor(self, config):
        """The newest release's processor, with all its parts."""
        return self.fast_tokenizer()

    def token_types(self, ids):
        """Inputs that the newest release needs in addition to the ids."""
        return {}

    def length_inputs(self, prompt):
        """Inputs that make one pass over prompt and answer equal to a pass over the prompt followed by one per answer token."""
        return {}

    def special_id(self, name):
        return self.tokenizer().token_to_id(name)

    def no_media_tokens(self):
        """A logit_bias that suppresses the media tokens."""
        return [[self.special_id(token), -1e4] for token in self.media_tokens]

    def chat_ids(self, messages, add_generation_prompt):
        return self.tokenizer().encode(self.render(messages, add_generation_prompt), add_special_tokens=False).ids

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        """(ids with expanded placeholders, inputs of the vision tower); fps: of videos, if not the model's default."""
        assert processor is None and not media_of(messages)
        return self.chat_ids(messages, add_generation_prompt), {}
