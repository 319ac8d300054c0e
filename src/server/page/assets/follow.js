// Keeps the newest answer in view while it grows, until the reader scrolls up.
import { button } from "./dom.js";

const SPACE = 12;  // pixels between the newest answer and the composer
const NEAR = 40;  // a reader who scrolls this near to the end wants to follow again

// turns: the conversation, below which the composer sticks. Returns {node: the button, follow, stop}.
export function makeFollow(turns, composer, onNewest) {
  let following = true;
  let before = scrollY;
  const node = button("↓ To the newest", (event) => {
    follow();
    if (event.detail === 0) onNewest();  // pressed by a key: the button, which had the focus, is gone
  }, { class: "small newest", hidden: true });

  // How many pixels of the conversation's end the composer hides.
  function hidden() {
    const end = turns.lastElementChild?.getBoundingClientRect().bottom;
    return end === undefined ? 0 : end + SPACE - composer.getBoundingClientRect().top;
  }
  function settle() {
    document.documentElement.style.setProperty("scroll-padding-bottom", `${composer.offsetHeight + SPACE}px`);
    if (following && hidden() > 0) scrollBy({ top: hidden(), behavior: "instant" });
    node.hidden = following || hidden() <= NEAR;
  }
  function follow() {
    following = true;
    settle();
  }
  function scrolled() {
    const rest = hidden();
    if (scrollY < before && rest > 1) following = false;
    else if (rest <= (scrollY > before ? NEAR : 1)) following = true;
    before = scrollY;
    node.hidden = following || rest <= NEAR;
  }

  const sizes = new ResizeObserver(settle);
  for (const grows of [turns, composer]) sizes.observe(grows);
  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", settle);
  return {
    node,
    follow,
    stop() {
      sizes.disconnect();
      removeEventListener("scroll", scrolled);
      removeEventListener("resize", settle);
      document.documentElement.style.removeProperty("scroll-padding-bottom");
    },
  };
}
