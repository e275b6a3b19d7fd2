"""The text the model learns: little stories from a seeded grammar.

A story keeps a state (who, what, how many, where), and every sentence is drawn from that state, so a model that
looks back does better than one that knows only word frequencies: names and things return, pronouns agree, counts
add up, and the closing line repeats what the story was about.
"""

import random

PEOPLE = {
    "she": ["Mira", "Anna", "Lena", "Tilda", "Nora", "Suri"],
    "he": ["Tom", "Paul", "Emil", "Ravi", "Otto", "Jun"],
}
POSSESSIVE = {"she": "her", "he": "his"}
ANIMALS = ["cat", "dog", "goat", "hen", "duck", "fox", "mouse", "pony"]
COLOURS = ["red", "blue", "green", "white", "black", "brown", "yellow"]
THINGS = ["plums", "shells", "stones", "coins", "books", "apples", "nuts", "keys", "cups"]
PLACES = ["garden", "river", "market", "forest", "school", "harbour", "hill", "kitchen"]
WEATHER = {
    "rain": ["It was raining", "took a coat", "got wet"],
    "sun": ["The sun was shining", "wore a hat", "felt warm"],
    "snow": ["Snow was falling", "wore two scarves", "had cold hands"],
    "wind": ["A strong wind was blowing", "held on to a hat", "ran home fast"],
}
FEELINGS = {"happy": "smiled", "sad": "cried", "tired": "went to sleep", "hungry": "ate some bread"}
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


class Story:
    """What is true so far; every method returns sentences and updates it."""

    def __init__(self, rng):
        self.rng = rng
        self.pronoun = rng.choice(["she", "he"])
        self.name = rng.choice(PEOPLE[self.pronoun])
        other_pronoun = rng.choice(["she", "he"])
        self.friend = rng.choice([name for name in PEOPLE[other_pronoun] if name != self.name])
        self.animal, self.colour = rng.choice(ANIMALS), rng.choice(COLOURS)
        self.thing, self.count = rng.choice(THINGS), rng.randint(2, 9)
        self.place, self.weather = rng.choice(PLACES), rng.choice(sorted(WEATHER))

    def opening(self):
        they, their = self.pronoun, POSSESSIVE[self.pronoun]
        sky, prepared, _ = WEATHER[self.weather]
        return self.rng.choice([
            f"Once there was a {self.colour} {self.animal} that lived with {self.name} near the {self.place}. "
            f"{sky}, so {self.name} {prepared}.",
            f"{sky} when {self.name} and {their} {self.colour} {self.animal} went to the {self.place}. "
            f"Because of that {they} {prepared}.",
            f"{self.name} had a {self.colour} {self.animal}. One day {they} took the {self.animal} to the "
            f"{self.place}. {sky} and {self.name} {prepared}.",
        ])

    def finds(self):
        return f"At the {self.place} {self.name} found {self.count} {self.thing}."

    def gains(self):
        more = self.rng.randint(1, 9)
        before, self.count = self.count, self.count + more
        return (f"{self.friend} gave {self.name} {more} more {self.thing}. {before} + {more} = {self.count}, "
                f"so now {self.pronoun} had {self.count} {self.thing}.")

    def gives(self):
        if self.count < 2:
            return self.gains()
        fewer = self.rng.randint(1, self.count - 1)
        before, self.count = self.count, self.count - fewer
        return (f"{self.name} gave {fewer} {self.thing} to {self.friend}. {before} - {fewer} = {self.count}, "
                f"so {self.pronoun} kept {self.count} {self.thing}.")

    def talks(self):
        if self.count <= 10:
            answer = f"I have {NUMBER_WORDS[self.count]} {self.thing}"
        else:
            answer = f"I have more than ten {self.thing}"
        return (f'"How many {self.thing} do you have?" asked {self.friend}. '
                f'"{answer}," said {self.name}.')

    def animal_acts(self):
        return self.rng.choice([
            f"The {self.colour} {self.animal} looked at the {self.thing} and then at {self.friend}.",
            f"Then the {self.animal} ran around the {self.place}, and {self.name} ran after the {self.animal}.",
            f"{self.friend} liked the {self.animal} because the {self.animal} was {self.colour}.",
        ])

    def feels(self):
        feeling = self.rng.choice(sorted(FEELINGS))
        return f"{self.name} was {feeling}, so {self.pronoun} {FEELINGS[feeling]}."

    def closing(self):
        _, _, after = WEATHER[self.weather]
        return (f"In the end {self.name} {after} and went home from the {self.place} with "
                f"{self.count} {self.thing} and the {self.colour} {self.animal}.")


def story(rng):
    state = Story(rng)
    events = [state.gains, state.gives, state.talks, state.animal_acts, state.feels]
    beginning = [state.opening(), state.finds()]
    middle = [event() for event in rng.choices(events, weights=[3, 3, 2, 2, 1], k=rng.randint(2, 4))]
    return " ".join([*beginning, *middle, state.closing()])


def stories(seed, count):
    rng = random.Random(seed)
    return [story(rng) for _ in range(count)]
