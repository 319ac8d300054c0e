"""What differs between the releases of transformers that the tests compare with: that of .venv, and 5, of .venv-newest.

Since 5, processors resize with torchvision by default, which differs from PIL by one level in some pixels; the references
here use those that resize with PIL, as valora does. Folders are saved whole, as processors save them.
"""

import numpy as np
import transformers
from PIL import Image

NEWEST = int(transformers.__version__.split(".")[0]) >= 5

if NEWEST:
    import visual_backend  # noqa: F401, I001  before the processors
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil as ClipPixels
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil as QwenPixels
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
else:
    from transformers import CLIPImageProcessor as ClipPixels  # noqa: F401
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import (
        Qwen2VLImageProcessor as QwenPixels,
    )


class QwenPatches:
    """Patches of pictures and videos."""

    def __init__(self, images, videos):
        self.images, self.videos = images, videos
        self.merge_size, self.temporal_patch_size = images.merge_size, images.temporal_patch_size

    @classmethod
    def of_folder(cls, folder):
        images = QwenPixels.from_pretrained(folder)
        return cls(images, transformers.Qwen2VLVideoProcessor.from_pretrained(folder) if NEWEST else images)

    @classmethod
    def with_settings(cls, **settings):
        images = QwenPixels(**settings)
        return cls(images, transformers.Qwen2VLVideoProcessor(**settings) if NEWEST else images)

    def of_image(self, picture):
        if not NEWEST:
            return self.older(self.images, [picture])
        made = self.images(images=[picture], return_tensors="np")
        return made["pixel_values"], made["image_grid_thw"][0].tolist()

    def of_video(self, frames):
        if not NEWEST:
            return self.older(self.videos, frames)
        p = self.videos
        height, width = smart_resize(frames[0].height, frames[0].width, p.patch_size * p.merge_size,
                                     p.size["shortest_edge"], p.size["longest_edge"])
        resized = np.stack([np.asarray(frame.resize((width, height), Image.Resampling.BICUBIC)) for frame in frames])
        made = p(videos=[resized], do_sample_frames=False, input_data_format="channels_last", return_tensors="pt")
        return made["pixel_values_videos"].numpy(), made["video_grid_thw"][0].tolist()

    @staticmethod
    def older(p, frames):
        return p._preprocess(frames, do_resize=True, size=p.size, resample=p.resample, do_rescale=True,
                             rescale_factor=p.rescale_factor, do_normalize=True, image_mean=p.image_mean,
                             image_std=p.image_std, patch_size=p.patch_size, temporal_patch_size=p.temporal_patch_size,
                             merge_size=p.merge_size, do_convert_rgb=True)
