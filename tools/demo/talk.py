"""Questions without a picture, and short sensible answers: greetings, questions about the model, and everything else."""

from scenes import pick

SHOW = "Please show me a picture or a short video."
HELLO = "Hello! Show me a picture or a short video."
SELF = "I am a small vision language model."
SKILLS = "I describe pictures and short videos, find and count shapes, and read short texts."
OTHER = "I answer about pictures."

GREETINGS = ["Hello", "Hi", "Hey", "Hello there", "Hi there", "Hey there", "Good morning", "Good evening", "Good day", "Greetings", "Hello model",
             "Hi, how are you", "Hello, how are you", "How are you", "How are you doing", "How is it going", "What's up", "Hello world", "Hola", "Test",
             "Are you there", "Is anybody there", "Nice to meet you", "Hello again", "Yo"]
ABOUT = ["Who are you", "What are you", "What is your name", "Tell me about yourself", "Introduce yourself", "Who made you", "Are you a robot",
         "Are you human", "Are you a person", "Which model are you", "What model is this", "What is this", "What kind of model are you", "Are you ChatGPT",
         "What is valora", "Who is there", "Do you have a name", "How big are you", "What should I call you", "Who am I talking to"]
ABLE = ["What can you do", "What can I ask", "What can I ask you", "What do you know", "How can you help me", "Can you help me", "Help", "Help me",
        "What are you good at", "What are your skills", "What do you do", "How do you work", "How do I use you", "How can I use this", "What are you for",
        "What should I ask", "Give me an example", "What questions can you answer", "Can you see", "Can you see pictures", "Can you see images",
        "Can you read", "Can you watch videos", "Can you describe a picture", "Can you find things", "Can you count", "What does this do", "Please help"]
THANKS = ["Thanks", "Thank you", "Thanks a lot", "Thank you very much", "Thank you so much", "Great, thanks", "Good job", "Well done", "Perfect", "Nice",
          "Great", "Cool", "Very good", "That is right", "Awesome"]
FAREWELLS = ["Bye", "Goodbye", "Good bye", "See you", "See you later", "Good night", "Have a nice day", "Bye bye", "Farewell", "Until tomorrow"]
PLACES = ["France", "Germany", "Italy", "Spain", "Japan", "China", "India", "Brazil", "Canada", "the USA", "London", "Paris", "Berlin", "Rome", "Tokyo",
          "New York", "my town", "the world", "Europe", "Africa"]
TOPICS = ["love", "music", "the sea", "the moon", "cats", "dogs", "history", "physics", "math", "science", "food", "coffee", "bread", "football", "chess",
          "money", "work", "time", "life", "computers", "Python", "C++", "Linux", "a tree", "a king", "summer", "winter", "rain", "war", "peace", "books",
          "a friend", "art", "cars", "trains", "the brain", "gravity", "atoms", "numbers", "language", "neural networks", "LoRA", "a robot", "the internet",
          "health", "sleep", "school", "politics", "religion", "sports", "films", "games", "tea", "pizza", "a bird", "the sun", "energy", "light"]
FORMS = [
    "What is the capital of {place}", "Tell me a joke", "Tell me a story", "Tell me something", "Say something", "Write a poem about {topic}",
    "Write a story about {topic}", "Write a song about {topic}", "Write a letter about {topic}", "Write an essay on {topic}", "Write code for {topic}",
    "Write a function", "Write a program that sorts a list", "What is {n} plus {n}", "What is {n} times {n}", "{n} + {n}", "{n} + {n} =", "Compute {n} * {n}",
    "Who is the president of {place}", "Who wrote this book", "Translate {topic} to French", "Translate this to German", "What time is it",
    "What day is it today", "What is the weather in {place}", "Why is the sky blue", "Explain {topic}", "Explain {topic} in simple words",
    "Tell me about {topic}", "What is {topic}", "What are {topic}", "Do you like {topic}", "I like {topic}", "I hate {topic}", "My name is {topic}",
    "I am sad", "I am happy", "I feel bad", "I am hungry", "How old are you", "Where do you live", "Do you dream", "Do you love me", "Are you happy",
    "How many people live in {place}", "How far is {place}", "Where is {place}", "How do I cook {topic}", "How do I learn {topic}", "Give me a recipe",
    "Give me advice about {topic}", "What do you think about {topic}", "Why do we need {topic}", "When was {topic} invented", "Who invented {topic}",
    "Is {topic} good", "Is {topic} better than {topic}", "Which is better, {topic} or {topic}", "What is the meaning of life", "Summarize this text",
    "Fix this bug", "Can you write about {topic}", "Can you explain {topic}", "Please explain {topic}", "Please write a poem", "Let us talk about {topic}",
    "Let's talk", "Sing a song", "Play a game", "Once upon a time", "The quick brown fox", "Lorem ipsum", "Write", "Continue", "Why", "How", "When", "Ok",
    "What", "Who", "Yes", "No", "Hmm", "Really", "I do not know", "You are wrong", "That is wrong", "List three {topic}", "Name five animals",
    "Name a color", "What is your favorite color", "Answer in one word", "Think step by step", "Describe {topic}", "Describe {place}", "Find {topic}",
    "What happened in {place}", "What is new in {place}", "How does {topic} work", "Should I buy {topic}", "Recommend a book about {topic}",
    "Write one sentence about {topic}", "Say hello in French", "What is the best {topic}", "Is there life on {place}", "How much is {topic}",
]
KINDS = [(GREETINGS, HELLO), (ABOUT, SELF), (ABLE, SKILLS), (THANKS, "You are welcome."), (FAREWELLS, "Goodbye!")]


def worded(rng, text):
    """The text with varied case, politeness and final mark."""
    if rng.random() < 0.1:
        text = pick(rng, ["Hello, ", "Hi, ", "Hey, ", "Please, ", "So, ", "Ok, "]) + text[0].lower() + text[1:]
    if rng.random() < 0.25:
        text = text.lower()
    question = text.split()[0].lower() in ("what", "who", "how", "why", "where", "when", "which", "is", "are", "do", "can", "should")
    return text + pick(rng, ["", "?", "?", "?"] if question else ["", ".", ".", "!"])


def other(rng):
    text = pick(rng, FORMS)
    while "{" in text:
        text = text.replace("{place}", pick(rng, PLACES), 1).replace("{topic}", pick(rng, TOPICS), 1).replace("{n}", str(rng.integers(0, 100)), 1)
    return text


def salad(rng, words):
    return " ".join(pick(rng, words) for _ in range(rng.integers(2, 9))).capitalize()


def pair(rng, words=()):
    """A question that needs no picture, and its answer; words: of which senseless questions are made."""
    kind = rng.random()
    if kind < 0.5:
        texts, answer = pick(rng, KINDS)
        return worded(rng, pick(rng, texts)), answer
    if words and kind > 0.85:
        return worded(rng, salad(rng, words)), OTHER
    return worded(rng, other(rng)), OTHER
